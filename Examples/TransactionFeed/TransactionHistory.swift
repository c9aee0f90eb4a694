import Foundation

/// Made-up transactions of several accounts, in the order of their keys, the same ones for the same seed.
///
/// They are made as they are asked for, so that a million of them need no memory.
struct TransactionHistory: Sequence, IteratorProtocol {
  /// When every account was opened: the first moment of the year 2010, UTC.
  private static let start = Date(timeIntervalSince1970: 1_262_304_000)

  /// How long all of it lasts at most, in seconds: fifteen years, so that what arrives today is newer.
  private static let length: TimeInterval = 15 * 365 * 86_400

  private let count: Int
  private let accountCount: Int
  private let longestPause: TimeInterval
  private var maker: TransactionMaker
  private var madeCount = 0
  private var account = 0
  private var date = Self.start

  /// Prepares a history.
  ///
  /// - Parameters:
  ///   - count: How many transactions there are.
  ///   - accountCount: How many accounts, numbered from 1 on, share them evenly; at least 1.
  ///   - seed: What they are made from.
  init(count: Int, accountCount: Int, seed: UInt64) {
    self.count = count
    self.accountCount = accountCount
    longestPause = Self.length / Double(count / accountCount + 1)
    maker = TransactionMaker(seed: seed)
  }

  /// A date around which every account has transactions, before it too.
  static func date(using generator: inout some RandomNumberGenerator) -> Date {
    // What is made ends about halfway.
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
