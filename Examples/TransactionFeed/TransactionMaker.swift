import ExampleSupport
import Foundation

/// Makes up transactions, the same ones for the same seed.
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

  /// Makes up a transaction.
  ///
  /// - Parameters:
  ///   - account: The number of the account.
  ///   - date: When it was.
  mutating func transaction(ofAccount account: Int, on date: Date) -> Transaction {
    Transaction(
      id: generator.nextUUID(), account: account, date: date, amount: .random(in: -50_000...50_000, using: &generator),
      counterparty: Self.counterparties.randomElement(using: &generator) ?? "",
      purpose: Self.purposes.randomElement(using: &generator) ?? "")
  }

  /// How long after a transaction the next one of the account comes.
  ///
  /// - Parameter longest: The longest time, in seconds.
  mutating func pause(upTo longest: TimeInterval) -> TimeInterval {
    // In whole seconds, as a bank would have it.
    Double.random(in: 0...longest, using: &generator).rounded(.down)
  }
}
