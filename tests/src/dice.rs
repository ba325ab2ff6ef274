//! Chance that can be repeated.

/// A small generator of our own (xorshift): the same seed gives the same rolls on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        // Seeds that lie close together shall not roll alike; and zero would stay zero.
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            dice.next();
        }
        dice
    }

    /// One of `0..sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
