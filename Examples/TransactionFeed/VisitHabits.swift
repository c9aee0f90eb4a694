import ExampleSupport

/// The habits of visitors, who mostly read a few accounts and the top of a page.
struct VisitHabits {
  private let accountCount: Int
  private var generator: SplitMix64

  /// Creates habits.
  ///
  /// - Parameters:
  ///   - accountCount: The number of accounts. They are numbered from 1.
  ///   - seed: The seed of the random numbers.
  init(accountCount: Int, seed: UInt64) {
    self.accountCount = accountCount
    generator = SplitMix64(seed: seed)
  }

  /// Returns the account of the next visit.
  mutating func account() -> Int {
    1 + fewOften(of: accountCount)
  }

  /// Returns the positions of the rows to open on a page.
  ///
  /// - Parameters:
  ///   - count: The number of rows to open.
  ///   - rowCount: The number of rows on the page.
  mutating func rows(_ count: Int, of rowCount: Int) -> [Int] {
    guard rowCount > 0 else { return [] }
    return (0..<count).map { _ in fewOften(of: rowCount) }
  }

  /// Returns a number below a limit, low numbers more often than high ones.
  private mutating func fewOften(of limit: Int) -> Int {
    let chance = Double.random(in: 0..<1, using: &generator)
    return Int(chance * chance * Double(limit))
  }
}
