//! Offer of a proxy server to its clients: devices, memories, and the programs that it accepts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use serdes::{
    ifrt::{AttributeMap, AttributeValue},
    stablehlo::{Passage, ProxyClient, StableHloVersion},
};
use serdes_proxy::Client;

use crate::{
    failure::Failure,
    terminal::{NAME, Terminal},
};

/// The facts that a server reports in a session.
pub(super) struct ServerOffer {
    platform: String,
    devices: Vec<(i32, String)>,
    memories: Vec<String>,
    /// The newest StableHLO that its plug-in reads; `None` if it compiles nothing, or does not
    /// report it.
    stablehlo: Option<StableHloVersion>,
}

impl ServerOffer {
    /// Returns the offer of the connected server.
    pub(super) fn of(client: &Client) -> Self {
        let devices = client.devices().iter();
        let mut memories: Vec<String> =
            client.memories().iter().map(|memory| memory.kind.to_string()).collect();
        memories.sort();
        memories.dedup();
        Self {
            platform: client.platform().to_owned(),
            devices: devices.map(|device| (device.id.0, device.kind.clone())).collect(),
            memories,
            stablehlo: stablehlo(client.attributes()),
        }
    }

    /// Returns the offer as fields of the JSON object of `negotiate`.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let devices: Vec<_> =
            self.devices.iter().map(|(id, kind)| json!({ "id": id, "kind": kind })).collect();
        let mut fields = Map::new();
        fields.insert("platform".to_owned(), json!(self.platform));
        fields.insert("devices".to_owned(), json!(devices));
        fields.insert("memories".to_owned(), json!(self.memories));
        fields.insert(
            "stablehlo".to_owned(),
            json!(self.stablehlo.map(|version| version.to_string())),
        );
        let programs: BTreeMap<_, _> = self
            .clients()
            .map(|(client, passage)| {
                let writes = client.writes.to_string();
                (client.release, json!({ "writes": writes, "programs": word(passage) }))
            })
            .collect();
        fields.insert("clients".to_owned(), json!(programs));
        fields
    }

    /// Prints the offer as text.
    pub(super) fn print(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, kind) in &self.devices {
            *kinds.entry(kind).or_default() += 1;
        }
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
        terminal.line(format_args!(
            "platform {NAME}{}{NAME:#}, devices: {}, memories: {}",
            self.platform,
            kinds.join(", "),
            self.memories.join(", ")
        ))?;
        let Some(version) = self.stablehlo else {
            return terminal.line(format_args!("programs: it does not say which it takes"));
        };
        terminal.line(format_args!("programs: up to StableHLO {version}"))?;
        for (client, passage) in self.clients() {
            terminal.line(format_args!(
                "  {:<16} writes {:<8} {}",
                client.release,
                client.writes.to_string(),
                sentence(passage)
            ))?;
        }
        Ok(())
    }

    fn clients(&self) -> impl Iterator<Item = (ProxyClient, Passage)> {
        let known = self.stablehlo.map(|reader| {
            ProxyClient::KNOWN.iter().map(move |&client| (client, client.passage(reader)))
        });
        known.into_iter().flatten()
    }
}

/// Returns the newest StableHLO that the plug-in reads, as three numbers or as text.
fn stablehlo(attributes: &AttributeMap) -> Option<StableHloVersion> {
    match attributes.get("stablehlo_current_version").ok()? {
        AttributeValue::Int64List(numbers) => {
            let numbers: Vec<u32> =
                numbers.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
            let [major, minor, patch] = *numbers else { return None };
            Some(StableHloVersion::new(major, minor, patch))
        }
        AttributeValue::String(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

fn word(passage: Passage) -> &'static str {
    match passage {
        Passage::AsTheyAre => "as_they_are",
        Passage::Rewritten => "rewritten",
        _ => "bridged",
    }
}

fn sentence(passage: Passage) -> &'static str {
    match passage {
        Passage::AsTheyAre => "taken unchanged",
        Passage::Rewritten => "taken; newer operations are written as older ones where that can be",
        _ => "taken as far as they have no newer operations; others need a bridge at the server",
    }
}
