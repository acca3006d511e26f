//! Elementwise operations.

use serdes_plugin::pjrt::ElementType;

use crate::{
    array::{Array, Data},
    compile::{Binary, Direction, Unary},
    number::{is_float, is_unsigned, round, wrap},
};

pub fn unary(operation: Unary, array: &Array) -> Data {
    let of = array.of.element;
    match &*array.data {
        Data::Float(data) if operation == Unary::IsFinite => {
            Data::Integer(data.iter().map(|value| i64::from(value.is_finite())).collect())
        }
        Data::Float(data) => Data::Float(
            data.iter().map(|value| round(of, unary_float(operation, *value))).collect(),
        ),
        Data::Integer(data) => Data::Integer(
            data.iter().map(|value| wrap(of, unary_integer(operation, of, *value))).collect(),
        ),
    }
}

fn unary_float(operation: Unary, value: f64) -> f64 {
    match operation {
        Unary::Abs => value.abs(),
        Unary::Cbrt => value.cbrt(),
        Unary::Ceil => value.ceil(),
        Unary::Cosine => value.cos(),
        Unary::Exponential => value.exp(),
        Unary::ExponentialMinusOne => value.exp_m1(),
        Unary::Floor => value.floor(),
        Unary::Log => value.ln(),
        Unary::LogPlusOne => value.ln_1p(),
        Unary::Logistic => 1.0 / (1.0 + (-value).exp()),
        Unary::Negate => -value,
        Unary::RoundAway => value.round(),
        Unary::RoundEven => value.round_ties_even(),
        Unary::Rsqrt => 1.0 / value.sqrt(),
        // The sign of a zero is kept.
        Unary::Sign if value == 0.0 || value.is_nan() => value,
        Unary::Sign => value.signum(),
        Unary::Sine => value.sin(),
        Unary::Sqrt => value.sqrt(),
        Unary::Tan => value.tan(),
        Unary::Tanh => value.tanh(),
        Unary::IsFinite | Unary::Not => f64::NAN,
    }
}

fn unary_integer(operation: Unary, of: ElementType, value: i64) -> i64 {
    match operation {
        Unary::Not if of == ElementType::Pred => 1 - value,
        Unary::Not => !value,
        Unary::Negate => value.wrapping_neg(),
        Unary::Sign if is_unsigned(of) => i64::from(value != 0),
        Unary::Sign => value.signum(),
        Unary::Abs if is_unsigned(of) => value,
        _ => value.wrapping_abs(),
    }
}

/// Applies an operation to pairs of elements. A scalar is paired with every element.
pub fn binary(operation: Binary, left: &Array, right: &Array) -> Data {
    let of = left.of.element;
    match (&*left.data, &*right.data) {
        (Data::Float(left), Data::Float(right)) => Data::Float(
            left.iter()
                .zip(right)
                .map(|(left, right)| binary_float(operation, of, *left, *right))
                .collect(),
        ),
        (Data::Integer(left), Data::Integer(right)) => Data::Integer(
            left.iter()
                .zip(right)
                .map(|(left, right)| binary_integer(operation, of, *left, *right))
                .collect(),
        ),
        // Unreachable: the types of the operands were compared before.
        _ => Data::Integer(Vec::new()),
    }
}

/// Folds each row of elements, with a scalar as the initial value.
pub fn fold(operation: Binary, data: &Data, start: &Array, rows: usize, columns: usize) -> Data {
    let of = start.of.element;
    let row = |row: usize| row * columns..(row + 1) * columns;
    match (data, &*start.data) {
        (Data::Float(data), Data::Float(start)) => Data::Float(
            (0..rows)
                .map(|at| {
                    // A sum is rounded once, at the end, so that narrow types lose little.
                    let wide = if operation == Binary::Add { ElementType::F64 } else { of };
                    let fold = |sum, value: &f64| binary_float(operation, wide, sum, *value);
                    round(of, data[row(at)].iter().fold(start[0], fold))
                })
                .collect(),
        ),
        (Data::Integer(data), Data::Integer(start)) => Data::Integer(
            (0..rows)
                .map(|at| {
                    let fold = |sum, value: &i64| binary_integer(operation, of, sum, *value);
                    data[row(at)].iter().fold(start[0], fold)
                })
                .collect(),
        ),
        _ => Data::Integer(Vec::new()),
    }
}

fn binary_float(operation: Binary, of: ElementType, left: f64, right: f64) -> f64 {
    // NaN propagates, whereas Rust's `max` and `min` return the other operand.
    let is_number = !left.is_nan() && !right.is_nan();
    let value = match operation {
        Binary::Add => left + right,
        Binary::Atan2 => left.atan2(right),
        Binary::Divide => left / right,
        Binary::Maximum if is_number => left.max(right),
        Binary::Minimum if is_number => left.min(right),
        Binary::Multiply => left * right,
        Binary::Power => left.powf(right),
        Binary::Remainder => left % right,
        Binary::Subtract => left - right,
        _ => f64::NAN,
    };
    round(of, value)
}

fn binary_integer(operation: Binary, of: ElementType, left: i64, right: i64) -> i64 {
    let is_less = less(of, left, right);
    let bits = of.bits() as i64;
    let shift = if (0..bits).contains(&right) { right as u32 } else { 64 };
    let value = match operation {
        // The sum of booleans is their disjunction.
        Binary::Add if of == ElementType::Pred => left | right,
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide | Binary::Remainder => divide(operation, of, left, right),
        Binary::Power => power(left, right),
        Binary::Maximum => {
            if is_less {
                right
            } else {
                left
            }
        }
        Binary::Minimum => {
            if is_less {
                left
            } else {
                right
            }
        }
        Binary::And => left & right,
        Binary::Or => left | right,
        Binary::Xor => left ^ right,
        Binary::ShiftLeft => left.checked_shl(shift).unwrap_or(0),
        Binary::ShiftRightArithmetic => left.checked_shr(shift).unwrap_or(left >> 63),
        Binary::ShiftRightLogical => {
            let mask = u64::MAX >> (64 - bits);
            (left as u64 & mask).checked_shr(shift).unwrap_or(0) as i64
        }
        Binary::Atan2 => 0,
    };
    wrap(of, value)
}

/// Divides integers. Division by zero gives all bits set and the dividend as remainder, as on
/// CPUs.
fn divide(operation: Binary, of: ElementType, left: i64, right: i64) -> i64 {
    match (operation, right, is_unsigned(of)) {
        (Binary::Divide, 0, _) => -1,
        (_, 0, _) => left,
        (Binary::Divide, _, true) => (left as u64 / right as u64) as i64,
        (Binary::Divide, _, false) => left.wrapping_div(right),
        (_, _, true) => (left as u64 % right as u64) as i64,
        (_, _, false) => left.wrapping_rem(right),
    }
}

fn power(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, 0..) => {
            let bits = (0..64).rev().filter(|bit| exponent >> bit != 0);
            bits.fold(1_i64, |value, bit| {
                let square = value.wrapping_mul(value);
                if exponent >> bit & 1 == 1 { square.wrapping_mul(base) } else { square }
            })
        }
        (1, _) => 1,
        (-1, _) => {
            if exponent % 2 == 0 {
                1
            } else {
                -1
            }
        }
        _ => 0,
    }
}

fn less(of: ElementType, left: i64, right: i64) -> bool {
    if is_unsigned(of) { (left as u64) < right as u64 } else { left < right }
}

pub fn compare(direction: Direction, left: &Array, right: &Array) -> Data {
    let of = left.of.element;
    // Less, equal and greater; all three are false for NaN.
    let orders: Vec<(bool, bool, bool)> = match (&*left.data, &*right.data) {
        (Data::Float(left), Data::Float(right)) => {
            left.iter().zip(right).map(|(a, b)| (a < b, a == b, a > b)).collect()
        }
        (Data::Integer(left), Data::Integer(right)) => left
            .iter()
            .zip(right)
            .map(|(a, b)| (less(of, *a, *b), a == b, less(of, *b, *a)))
            .collect(),
        _ => Vec::new(),
    };
    let is_so = |(less, equal, greater): (bool, bool, bool)| match direction {
        Direction::Equal => equal,
        Direction::NotEqual => !equal,
        Direction::GreaterOrEqual => greater || equal,
        Direction::Greater => greater,
        Direction::LessOrEqual => less || equal,
        Direction::Less => less,
    };
    Data::Integer(orders.into_iter().map(|order| i64::from(is_so(order))).collect())
}

/// Returns an element of an array, or the only element of a scalar.
fn at<T: Copy>(data: &[T], place: usize) -> T {
    if data.len() == 1 { data[0] } else { data[place] }
}

pub fn select(which: &Array, left: &Array, right: &Array) -> Data {
    let Data::Integer(which) = &*which.data else { return Data::Integer(Vec::new()) };
    match (&*left.data, &*right.data) {
        (Data::Float(left), Data::Float(right)) => {
            let choose = |place: usize| {
                if at(which, place) != 0 { left[place] } else { right[place] }
            };
            Data::Float((0..left.len()).map(choose).collect())
        }
        (Data::Integer(left), Data::Integer(right)) => {
            let choose = |place: usize| {
                if at(which, place) != 0 { left[place] } else { right[place] }
            };
            Data::Integer((0..left.len()).map(choose).collect())
        }
        _ => Data::Integer(Vec::new()),
    }
}

pub fn clamp(low: &Array, array: &Array, high: &Array) -> Data {
    let of = array.of.element;
    match (&*low.data, &*array.data, &*high.data) {
        (Data::Float(low), Data::Float(data), Data::Float(high)) => {
            let clamp = |(place, value): (usize, &f64)| {
                let above = binary_float(Binary::Maximum, of, *value, at(low, place));
                binary_float(Binary::Minimum, of, above, at(high, place))
            };
            Data::Float(data.iter().enumerate().map(clamp).collect())
        }
        (Data::Integer(low), Data::Integer(data), Data::Integer(high)) => {
            let clamp = |(place, value): (usize, &i64)| {
                let above = binary_integer(Binary::Maximum, of, *value, at(low, place));
                binary_integer(Binary::Minimum, of, above, at(high, place))
            };
            Data::Integer(data.iter().enumerate().map(clamp).collect())
        }
        _ => Data::Integer(Vec::new()),
    }
}

/// Converts elements to a type. Floats are rounded towards zero and clamped to its range.
pub fn convert(array: &Array, to: ElementType) -> Data {
    let from = array.of.element;
    match (&*array.data, is_float(to)) {
        (Data::Float(data), true) => {
            Data::Float(data.iter().map(|value| round(to, *value)).collect())
        }
        (Data::Float(data), false) => {
            let convert = |value: &f64| match to {
                ElementType::Pred => i64::from(*value != 0.0),
                ElementType::S8 => i64::from(*value as i8),
                ElementType::S16 => i64::from(*value as i16),
                ElementType::S32 => i64::from(*value as i32),
                ElementType::U8 => i64::from(*value as u8),
                ElementType::U16 => i64::from(*value as u16),
                ElementType::U32 => i64::from(*value as u32),
                ElementType::U64 => (*value as u64) as i64,
                _ => *value as i64,
            };
            Data::Integer(data.iter().map(convert).collect())
        }
        (Data::Integer(data), true) => {
            let convert = |value: &i64| match (from, to) {
                (ElementType::U64, ElementType::F32) => f64::from(*value as u64 as f32),
                (ElementType::U64, _) => *value as u64 as f64,
                (_, ElementType::F32) => f64::from(*value as f32),
                _ => *value as f64,
            };
            Data::Float(data.iter().map(|value| round(to, convert(value))).collect())
        }
        (Data::Integer(data), false) => {
            Data::Integer(data.iter().map(|value| wrap(to, *value)).collect())
        }
    }
}
