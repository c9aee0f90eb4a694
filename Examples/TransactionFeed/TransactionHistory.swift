import Foundation

/// Synthetic transactions of several accounts, in the order of their keys, the same for the same seed.
///
/// They are created on demand, so a million of them need no memory.
struct TransactionHistory: Sequence, IteratorProtocol {
  /// The opening date of all accounts, the first moment of 2010, UTC.
  private static let start = Date(timeIntervalSince1970: 1_262_304_000)

  /// The maximum duration in seconds: fifteen years, so today's transactions are newer.
  private static let length: TimeInterval = 15 * 365 * 86_400

  private let count: Int
  private let accountCount: Int
  private let longestPause: TimeInterval
  private var maker: TransactionMaker
  private var madeCount = 0
  private var account = 0
  private var date = Self.start

  /// Creates a history.
  ///
  /// - Parameters:
  ///   - count: The number of transactions.
  ///   - accountCount: The number of accounts, at least 1, which share the transactions evenly and are numbered from 1.
  ///   - seed: The seed of the random numbers.
  init(count: Int, accountCount: Int, seed: UInt64) {
    self.count = count
    self.accountCount = accountCount
    longestPause = Self.length / Double(count / accountCount + 1)
    maker = TransactionMaker(seed: seed)
  }

  /// A date with transactions of every account before and after it.
  static func date(using generator: inout some RandomNumberGenerator) -> Date {
    // The transactions end at about half of the maximum duration.
    start + Double.random(in: length / 5...length / 3, using: &generator)
  }

  mutating func next() -> Transaction? {
    guard madeCount < count else { return nil }
    let account = 1 + madeCount * accountCount / count
    if account != self.account {
      self.account = account
      date = Self.start
    }
    madeCount += 1
    date += maker.pause(upTo: longestPause)
    return maker.transaction(ofAccount: account, on: date)
  }
}
