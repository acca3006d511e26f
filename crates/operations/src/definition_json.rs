//! The JSON form of operations: that of `serdes ops RELEASE --json`, one object per operation, with
//! the field names of TensorFlow's `OpDef`.
//!
//! Does not depend on the use of the operations.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value as Json, json};
use serdes_graph_format::schema::EnumType;

use super::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, DefinitionError, Element,
    OperationDefinition, ValueDefinition, type_name,
};

fn type_number(name: &str) -> Option<i32> {
    EnumType::data_types()
        .and_then(|types| types.number(name))
        .or_else(|| name.strip_prefix("DT_")?.parse().ok())
}

/// Reads the fields of one object, and names the object in errors.
struct Fields<'j> {
    operation: &'j str,
    object: &'j Map<String, Json>,
    of: String,
}

impl<'j> Fields<'j> {
    fn wrong(&self, what: &str, found: Option<&Json>, expected: &'static str) -> DefinitionError {
        let found = found.map_or("missing".to_owned(), Json::to_string);
        DefinitionError {
            operation: self.operation.chars().take(80).collect(),
            what: format!("{}{what}", self.of),
            found: found.chars().take(80).collect(),
            expected,
        }
    }

    fn text(&self, key: &str) -> Result<&'j str, DefinitionError> {
        let found = self.object.get(key);
        found.and_then(Json::as_str).ok_or_else(|| self.wrong(key, found, "a text"))
    }

    fn optional_text(&self, key: &str) -> Result<Option<String>, DefinitionError> {
        match self.object.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(_) => self.text(key).map(|text| Some(text.to_owned())),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, DefinitionError> {
        match self.object.get(key) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(flag)) => Ok(*flag),
            found => Err(self.wrong(key, found, "true or false")),
        }
    }

    fn integer(&self, key: &str) -> Result<Option<i64>, DefinitionError> {
        match self.object.get(key) {
            None | Some(Json::Null) => Ok(None),
            found => found
                .and_then(Json::as_i64)
                .map(Some)
                .ok_or_else(|| self.wrong(key, found, "an integer of 64 bits")),
        }
    }

    fn array(&self, key: &str) -> Result<&'j [Json], DefinitionError> {
        match self.object.get(key) {
            None | Some(Json::Null) => Ok(&[]),
            Some(Json::Array(values)) => Ok(values),
            found => Err(self.wrong(key, found, "an array")),
        }
    }

    /// Returns the objects of an array. The name of each precedes the errors in it.
    fn objects(&self, key: &str) -> Result<Vec<Fields<'j>>, DefinitionError> {
        let values = self.array(key)?.iter().enumerate();
        values
            .map(|(position, value)| {
                let object = value
                    .as_object()
                    .ok_or_else(|| self.wrong(key, Some(value), "an object an entry"))?;
                let of = format!("{key}[{position}].");
                Ok(Fields { operation: self.operation, object, of })
            })
            .collect()
    }
}

impl OperationDefinition {
    /// Reads the JSON object of an operation, whose name is `name` if the object has none. A string
    /// in place of the object is the name of an operation of which nothing else is known.
    ///
    /// # Errors
    /// [`DefinitionError`] with the text found and the text expected.
    pub fn from_json(name: Option<&str>, json: &Json) -> Result<Self, DefinitionError> {
        if let Some(name) = json.as_str().filter(|name| !name.is_empty()) {
            return Ok(Self::of_name(name));
        }
        let empty = Map::new();
        let object = json.as_object();
        let fields = Fields {
            operation: name
                .or_else(|| object.and_then(|object| object.get("name")).and_then(Json::as_str))
                .unwrap_or_default(),
            object: object.unwrap_or(&empty),
            of: String::new(),
        };
        if object.is_none() {
            return Err(fields.wrong("the entry", Some(json), "an object or a name"));
        }
        if fields.operation.is_empty() {
            return Err(fields.wrong("name", fields.object.get("name"), "the operation's name"));
        }
        let arguments =
            |key| fields.objects(key)?.iter().map(argument).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            name: fields.operation.to_owned(),
            inputs: arguments("inputs")?,
            outputs: arguments("outputs")?,
            attributes: fields.objects("attrs")?.iter().map(attribute).collect::<Result<_, _>>()?,
            is_stateful: fields.flag("is_stateful")?,
            is_name_alone: fields.flag("is_name_alone")?,
            is_commutative: fields.flag("is_commutative")?,
            is_aggregate: fields.flag("is_aggregate")?,
            allows_uninitialized_input: fields.flag("allows_uninitialized_input")?,
            deprecated_since: fields
                .integer("deprecation")?
                .map(|version| {
                    i32::try_from(version).map_err(|_| {
                        let found = fields.object.get("deprecation");
                        fields.wrong("deprecation", found, "a version of 32 bits")
                    })
                })
                .transpose()?,
        })
    }

    /// Returns the JSON object of the operation. Fields with the default value are left out.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        for (key, arguments) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if !arguments.is_empty() {
                let arguments = arguments.iter().map(argument_to_json).collect();
                object.insert(key.into(), Json::Array(arguments));
            }
        }
        if !self.attributes.is_empty() {
            let attributes = self.attributes.iter().map(attribute_to_json).collect();
            object.insert("attrs".into(), Json::Array(attributes));
        }
        for (key, flag) in [
            ("is_stateful", self.is_stateful),
            ("is_commutative", self.is_commutative),
            ("is_aggregate", self.is_aggregate),
            ("allows_uninitialized_input", self.allows_uninitialized_input),
            ("is_name_alone", self.is_name_alone),
        ] {
            if flag {
                object.insert(key.into(), json!(true));
            }
        }
        if let Some(version) = self.deprecated_since {
            object.insert("deprecation".into(), json!(version));
        }
        Json::Object(object)
    }
}

fn argument(fields: &Fields<'_>) -> Result<ArgumentDefinition, DefinitionError> {
    let fixed = fields
        .optional_text("type")?
        .map(|name| {
            type_number(&name).map(ArgumentType::Fixed).ok_or_else(|| {
                fields.wrong("type", fields.object.get("type"), "a type such as DT_FLOAT")
            })
        })
        .transpose()?;
    let by_attribute = fields.optional_text("type_attr")?.map(ArgumentType::Attribute);
    let by_list = fields.optional_text("type_list_attr")?.map(ArgumentType::List);
    let element = match (fixed, by_attribute, by_list) {
        (Some(one), None, None) | (None, Some(one), None) | (None, None, Some(one)) => one,
        _ => {
            return Err(fields.wrong(
                "type",
                fields.object.get("type"),
                "exactly one of type, type_attr and type_list_attr",
            ));
        }
    };
    Ok(ArgumentDefinition {
        name: fields.text("name")?.to_owned(),
        element,
        number_attribute: fields.optional_text("number_attr")?,
        is_reference: fields.flag("is_ref")?,
    })
}

fn argument_to_json(argument: &ArgumentDefinition) -> Json {
    let mut object = Map::new();
    object.insert("name".into(), json!(argument.name));
    match &argument.element {
        ArgumentType::Fixed(number) => object.insert("type".into(), json!(type_name(*number))),
        ArgumentType::Attribute(name) => object.insert("type_attr".into(), json!(name)),
        ArgumentType::List(name) => object.insert("type_list_attr".into(), json!(name)),
    };
    if let Some(name) = &argument.number_attribute {
        object.insert("number_attr".into(), json!(name));
    }
    if argument.is_reference {
        object.insert("is_ref".into(), json!(true));
    }
    Json::Object(object)
}

fn attribute(fields: &Fields<'_>) -> Result<AttributeDefinition, DefinitionError> {
    let kind = AttributeKind::from_name(fields.text("type")?).ok_or_else(|| {
        fields.wrong("type", fields.object.get("type"), "a kind such as int or list(type)")
    })?;
    let read = |kind: AttributeKind, key: &str, json: &Json| {
        value(kind, json)
            .ok_or_else(|| fields.wrong(key, Some(json), "a value of the attribute's kind"))
    };
    let default = match fields.object.get("default") {
        None | Some(Json::Null) => None,
        Some(json) => Some(read(kind, "default", json)?),
    };
    let element = AttributeKind { is_list: false, ..kind };
    let allowed = match fields.object.get("allowed_values") {
        None | Some(Json::Null) => None,
        Some(_) => Some(
            fields
                .array("allowed_values")?
                .iter()
                .map(|json| read(element, "allowed_values", json))
                .collect::<Result<_, _>>()?,
        ),
    };
    let name = fields.text("name")?.to_owned();
    Ok(AttributeDefinition { name, kind, default, minimum: fields.integer("minimum")?, allowed })
}

fn attribute_to_json(attribute: &AttributeDefinition) -> Json {
    let mut object = Map::new();
    object.insert("name".into(), json!(attribute.name));
    object.insert("type".into(), json!(attribute.kind.to_string()));
    if let Some(default) = &attribute.default {
        object.insert("default".into(), value_to_json(default));
    }
    if let Some(allowed) = &attribute.allowed {
        let allowed = allowed.iter().map(value_to_json).collect();
        object.insert("allowed_values".into(), Json::Array(allowed));
    }
    if let Some(minimum) = attribute.minimum {
        object.insert("minimum".into(), json!(minimum));
    }
    Json::Object(object)
}

fn value(kind: AttributeKind, json: &Json) -> Option<ValueDefinition> {
    if kind.is_list {
        let element = AttributeKind { is_list: false, ..kind };
        let values = json.as_array()?.iter().map(|json| value(element, json));
        return values.collect::<Option<_>>().map(ValueDefinition::List);
    }
    Some(match kind.element {
        Element::String => ValueDefinition::String(bytes(json)?),
        Element::Int => ValueDefinition::Int(json.as_i64()?),
        Element::Float => ValueDefinition::Float(float(json)?.to_bits()),
        Element::Bool => ValueDefinition::Bool(json.as_bool()?),
        Element::Type => ValueDefinition::Type(type_number(json.as_str()?)?),
        Element::Shape => ValueDefinition::Shape(shape(json)?),
        Element::Tensor => ValueDefinition::Tensor(base64_bytes(json, "tensor")?),
        Element::Function => ValueDefinition::Function(json.get("func")?.as_str()?.to_owned()),
    })
}

fn value_to_json(value: &ValueDefinition) -> Json {
    match value {
        ValueDefinition::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({"b64": BASE64.encode(bytes)}),
        },
        ValueDefinition::Int(number) => json!(number),
        ValueDefinition::Float(bits) => float_to_json(f32::from_bits(*bits)),
        ValueDefinition::Bool(flag) => json!(flag),
        ValueDefinition::Type(number) => json!(type_name(*number)),
        ValueDefinition::Shape(None) => json!({"unknown_rank": true}),
        ValueDefinition::Shape(Some(dimensions)) => json!({"dims": dimensions}),
        ValueDefinition::Tensor(bytes) => json!({"tensor": BASE64.encode(bytes)}),
        ValueDefinition::Function(name) => json!({"func": name}),
        ValueDefinition::List(values) => Json::Array(values.iter().map(value_to_json).collect()),
    }
}

fn base64_bytes(json: &Json, key: &str) -> Option<Vec<u8>> {
    BASE64.decode(json.get(key)?.as_str()?).ok()
}

fn bytes(json: &Json) -> Option<Vec<u8>> {
    match json {
        Json::String(text) => Some(text.clone().into_bytes()),
        _ => base64_bytes(json, "b64"),
    }
}

fn float(json: &Json) -> Option<f32> {
    match json.as_str() {
        Some("inf") => Some(f32::INFINITY),
        Some("-inf") => Some(f32::NEG_INFINITY),
        Some("nan") => Some(f32::NAN),
        Some(_) => None,
        // The shortest text of the number, parsed as a 32-bit float: going through 64 bits rounds
        // twice.
        None => json.as_number()?.to_string().parse().ok(),
    }
}

fn float_to_json(number: f32) -> Json {
    match number {
        f32::INFINITY => json!("inf"),
        f32::NEG_INFINITY => json!("-inf"),
        _ if number.is_nan() => json!("nan"),
        // Goes through the shortest text, so that 0.1 is printed as 0.1.
        _ => json!(number.to_string().parse::<f64>().unwrap_or(f64::from(number))),
    }
}

fn shape(json: &Json) -> Option<Option<Vec<i64>>> {
    if json.get("unknown_rank").and_then(Json::as_bool) == Some(true) {
        return Some(None);
    }
    let dimensions = json.get("dims")?.as_array()?.iter().map(Json::as_i64);
    dimensions.collect::<Option<Vec<i64>>>().map(Some)
}
