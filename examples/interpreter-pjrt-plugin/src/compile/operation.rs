//! Steps of a compiled program.

use crate::array::{Array, Type};

/// A function. Its values are numbered; the number of a value is its slot.
pub struct Function {
    pub parameters: Vec<Type>,
    pub outputs: Vec<Type>,
    pub body: Block,
    pub slots: usize,
    /// Number of elements of all values.
    pub elements: usize,
}

/// Steps in order.
pub struct Block {
    pub arguments: Vec<usize>,
    pub steps: Vec<Step>,
    pub results: Vec<usize>,
}

/// An operation, the slots that it reads, and the slots that it writes.
pub struct Step {
    pub operation: Operation,
    pub operands: Vec<usize>,
    pub results: Vec<(usize, Type)>,
}

pub enum Operation {
    Constant(Array),
    Unary(Unary),
    Binary(Binary),
    Compare(Direction),
    Select,
    Clamp,
    Convert,
    /// Elements of another type with the same bits.
    Bitcast,
    /// The same values.
    Identity,
    /// The same elements in other dimensions.
    Reshape,
    Iota(usize),
    /// The operand, repeated. The list has the dimension of the result for each of its dimensions.
    Broadcast(Vec<usize>),
    /// Elements of the operand from `first` on, at a stride in each dimension of the result.
    View {
        first: usize,
        strides: Vec<usize>,
    },
    DynamicSlice,
    DynamicUpdateSlice,
    /// Padding before the operand's elements and between them, in each dimension.
    Pad {
        low: Vec<usize>,
        interior: Vec<usize>,
    },
    Concatenate(usize),
    Dot(Dot),
    /// Kept dimensions, folded dimensions, and the body that combines two elements.
    Reduce {
        kept: Vec<usize>,
        folded: Vec<usize>,
        body: Block,
    },
    While {
        condition: Block,
        body: Block,
    },
    Case(Vec<Block>),
    Call(usize),
}

/// Dimensions of the two operands of a product: batch dimensions, kept dimensions and summed
/// dimensions.
pub struct Dot {
    pub left: [Vec<usize>; 3],
    pub right: [Vec<usize>; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Abs,
    Cbrt,
    Ceil,
    Cosine,
    Exponential,
    ExponentialMinusOne,
    Floor,
    IsFinite,
    Log,
    LogPlusOne,
    Logistic,
    Negate,
    Not,
    RoundAway,
    RoundEven,
    Rsqrt,
    Sign,
    Sine,
    Sqrt,
    Tan,
    Tanh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    And,
    Atan2,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Power,
    Remainder,
    ShiftLeft,
    ShiftRightArithmetic,
    ShiftRightLogical,
    Subtract,
    Xor,
}

/// In the order of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
    LessOrEqual,
    Less,
}

/// Names of the operations with one operand, without their versions.
pub const UNARY: &[(&str, Unary)] = &[
    ("abs", Unary::Abs),
    ("cbrt", Unary::Cbrt),
    ("ceil", Unary::Ceil),
    ("cosine", Unary::Cosine),
    ("exponential", Unary::Exponential),
    ("exponential_minus_one", Unary::ExponentialMinusOne),
    ("floor", Unary::Floor),
    ("is_finite", Unary::IsFinite),
    ("log", Unary::Log),
    ("log_plus_one", Unary::LogPlusOne),
    ("logistic", Unary::Logistic),
    ("negate", Unary::Negate),
    ("not", Unary::Not),
    ("round_nearest_afz", Unary::RoundAway),
    ("round_nearest_even", Unary::RoundEven),
    ("rsqrt", Unary::Rsqrt),
    ("sign", Unary::Sign),
    ("sine", Unary::Sine),
    ("sqrt", Unary::Sqrt),
    ("tan", Unary::Tan),
    ("tanh", Unary::Tanh),
];

/// Names of the operations with two operands.
pub const BINARY: &[(&str, Binary)] = &[
    ("add", Binary::Add),
    ("and", Binary::And),
    ("atan2", Binary::Atan2),
    ("divide", Binary::Divide),
    ("maximum", Binary::Maximum),
    ("minimum", Binary::Minimum),
    ("multiply", Binary::Multiply),
    ("or", Binary::Or),
    ("power", Binary::Power),
    ("remainder", Binary::Remainder),
    ("shift_left", Binary::ShiftLeft),
    ("shift_right_arithmetic", Binary::ShiftRightArithmetic),
    ("shift_right_logical", Binary::ShiftRightLogical),
    ("subtract", Binary::Subtract),
    ("xor", Binary::Xor),
];

/// Names of all other operations.
pub const OTHERS: &[&str] = &[
    "bitcast_convert",
    "broadcast_in_dim",
    "call",
    "case",
    "clamp",
    "compare",
    "composite",
    "concatenate",
    "constant",
    "convert",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "if",
    "iota",
    "optimization_barrier",
    "pad",
    "reduce",
    "reshape",
    "return",
    "select",
    "slice",
    "transpose",
    "while",
];

impl Unary {
    /// Returns true if it takes integers.
    pub fn takes_integers(self) -> bool {
        matches!(self, Self::Abs | Self::Negate | Self::Not | Self::Sign)
    }

    pub fn takes_floats(self) -> bool {
        self != Self::Not
    }
}

impl Binary {
    /// Returns true if it takes integers.
    pub fn takes_integers(self) -> bool {
        self != Self::Atan2
    }

    pub fn takes_floats(self) -> bool {
        use Binary::{And, Or, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Xor};
        !matches!(self, And | Or | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor)
    }
}

impl Direction {
    const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::GreaterOrEqual,
        Self::Greater,
        Self::LessOrEqual,
        Self::Less,
    ];

    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
