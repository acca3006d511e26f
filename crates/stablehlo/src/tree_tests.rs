//! Tests of trees of programs that jaxlib wrote.

use super::*;

macro_rules! artifact {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/data/stablehlo/", $name, ".mlirbc"))
    };
}

/// Returns the names of a function's operations; those in regions follow in parentheses.
fn outline(region: &Region<'_>) -> String {
    let of = |operation: &Operation<'_>| match operation.regions.is_empty() {
        true => operation.name.to_owned(),
        false => {
            let regions: Vec<_> = operation.regions.iter().map(outline).collect();
            format!("{}({})", operation.name, regions.join("; "))
        }
    };
    region.operations.iter().map(of).collect::<Vec<_>>().join(" ")
}

fn function<'t, 'a>(root: &'t Region<'a>, place: usize) -> &'t Operation<'a> {
    &root.operations[0].regions[0].operations[place]
}

#[test]
fn tree_of_an_addition_has_its_values_and_types() {
    let program = Program::read(artifact!("add-1.22.0")).unwrap();
    let root = program.tree().unwrap();
    let main = function(&root, 0);
    assert_eq!((main.dialect, main.name), ("vhlo", "func_v1"));
    let body = &main.regions[0];
    let [constant, spread, add, end] = &body.operations[..] else { panic!("{}", outline(body)) };
    assert_eq!((add.name, end.name), ("add_v1", "return_v1"));
    assert_eq!(spread.operands, [constant.results[0].number]);
    assert_eq!(add.operands, [body.arguments[0].number, spread.results[0].number]);
    assert_eq!(end.operands, [add.results[0].number]);
    let of = program.tensor_type(add.results[0].type_number).unwrap();
    assert_eq!(body.arguments[0].type_number, add.results[0].type_number);
    assert_eq!(of.element, "f32");
}

#[test]
fn tree_of_a_loop_has_its_regions_in_order() {
    let program = Program::read(artifact!("endless_while-1.10.9")).unwrap();
    let root = program.tree().unwrap();
    let text = outline(&root);
    assert!(text.contains("while_v1("), "{text}");
    let body = &function(&root, 0).regions[0];
    let repeated = body.operations.iter().find(|operation| operation.name == "while_v1").unwrap();
    assert_eq!(repeated.regions.len(), 2);
    for region in &repeated.regions {
        assert_eq!(region.arguments.len(), repeated.operands.len());
        assert_eq!(region.operations.last().unwrap().name, "return_v1");
    }
}

#[test]
fn tree_numbers_each_value_of_a_function_above_those_in_use() {
    fn look(region: &Region<'_>, mut defined: Vec<usize>) {
        for value in &region.arguments {
            assert!(!defined.contains(&value.number), "{value:?}");
            defined.push(value.number);
        }
        for operation in &region.operations {
            assert!(operation.operands.iter().all(|number| defined.contains(number)));
            for region in &operation.regions {
                look(region, defined.clone());
            }
            for value in &operation.results {
                assert!(!defined.contains(&value.number), "{value:?}");
                defined.push(value.number);
            }
        }
    }
    for bytes in [
        &artifact!("sorts-1.10.9")[..],
        artifact!("approx_max_k-1.10.9"),
        artifact!("endless_while-1.10.9"),
        artifact!("psum-1.13.3"),
        artifact!("pooling_gradient-1.22.0"),
    ] {
        let program = Program::read(bytes).unwrap();
        let root = program.tree().unwrap();
        for function in &root.operations[0].regions[0].operations {
            function.regions.iter().for_each(|region| look(region, Vec::new()));
        }
    }
}

#[test]
fn attribute_of_a_function_is_found_by_its_place() {
    let program = Program::read(artifact!("add-1.22.0")).unwrap();
    let root = program.tree().unwrap();
    let main = function(&root, 0);
    assert_eq!(program.attribute(main, 3), Some(Attribute::String("main")));
    assert_eq!(program.attribute(main, 1000), None);
}

#[test]
fn tree_of_damaged_bytes_is_an_error_or_a_tree() {
    let bytes = artifact!("endless_while-1.10.9");
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= change;
            if let Ok(program) = Program::read(&damaged) {
                let _ = program.tree();
            }
        }
    }
}
