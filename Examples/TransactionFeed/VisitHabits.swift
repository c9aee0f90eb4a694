import ExampleSupport

/// What people look at: mostly the same few accounts, and mostly what stands at the top of a page.
struct VisitHabits {
  private let accountCount: Int
  private var generator: SplitMix64

  /// Makes habits.
  ///
  /// - Parameters:
  ///   - accountCount: How many accounts there are, numbered from 1 on.
  ///   - seed: What chance is made from.
  init(accountCount: Int, seed: UInt64) {
    self.accountCount = accountCount
    generator = SplitMix64(seed: seed)
  }

  /// The account of the next visit.
  mutating func account() -> Int {
    1 + fewOften(of: accountCount)
  }

  /// Which rows of a page are opened, by their places on it.
  ///
  /// - Parameters:
  ///   - count: How many.
  ///   - rowCount: How many rows there are.
  mutating func rows(_ count: Int, of rowCount: Int) -> [Int] {
    guard rowCount > 0 else { return [] }
    return (0..<count).map { _ in fewOften(of: rowCount) }
  }

  /// A number below a limit, a low one more often than a high one.
  private mutating func fewOften(of limit: Int) -> Int {
    let chance = Double.random(in: 0..<1, using: &generator)
    return Int(chance * chance * Double(limit))
  }
}
