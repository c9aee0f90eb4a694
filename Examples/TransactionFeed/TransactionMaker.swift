import ExampleSupport
import Foundation

/// A generator of synthetic transactions, which are the same for the same seed.
struct TransactionMaker {
  private static let counterparties = [
    "Alder Books", "Bright Energy", "City Transport", "Corner Bakery", "Fern & Sons", "Harbour Café", "Jonas Petersen",
    "Lakeside Rent", "Mira Okafor", "North Insurance", "Old Mill Market", "Pine Pharmacy", "Quick Parcel", "Salary",
  ]

  private static let purposes = [
    "card payment", "direct debit", "invoice", "monthly rate", "refund", "standing order", "transfer",
  ]

  private var generator: SplitMix64

  init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
  }

  /// Returns a new transaction.
  ///
  /// - Parameters:
  ///   - account: The number of the account.
  ///   - date: The date of the transaction.
  mutating func transaction(ofAccount account: Int, on date: Date) -> Transaction {
    Transaction(
      id: generator.nextUUID(), account: account, date: date, amount: .random(in: -50_000...50_000, using: &generator),
      counterparty: Self.counterparties.randomElement(using: &generator) ?? "",
      purpose: Self.purposes.randomElement(using: &generator) ?? "")
  }

  /// Returns the random time from one transaction of an account to the next.
  ///
  /// - Parameter longest: The maximum, in seconds.
  mutating func pause(upTo longest: TimeInterval) -> TimeInterval {
    // In whole seconds, as at a bank.
    Double.random(in: 0...longest, using: &generator).rounded(.down)
  }
}
