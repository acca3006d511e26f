//! Tests of whole environments: read from disk, judged, and repaired.

mod causes;
mod corpus_replay;
mod environments;
mod kinds;
mod locks;
mod page;
mod pythons;
mod reading;
mod site;
