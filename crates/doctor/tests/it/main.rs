//! Tests of environments as a whole: read from disk, judged, and healed.

mod causes;
mod corpus_replay;
mod environments;
mod kinds;
mod locks;
mod page;
mod pythons;
mod reading;
mod site;
