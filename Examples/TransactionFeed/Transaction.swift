import Foundation
import Larder

/// A payment to or from an account.
struct Transaction: Codable, Hashable, Sendable {
  var id: UUID
  var account: Int
  var date: Date

  /// The amount in cents, which is negative for a payment from the account.
  var amount: Int64

  /// The payer or the payee.
  var counterparty: String

  /// The purpose of the payment.
  var purpose: String
}

extension Transaction {
  /// The key: account, then date, then the identifier, which distinguishes transactions at the same time.
  var key: StoreKey {
    StoreKey(components: "txn", account, date, id)
  }

  /// Returns the range of the keys of an account's transactions, oldest first.
  static func range(ofAccount account: Int) -> KeyRange {
    .prefix(components: "txn", account)
  }

  /// Returns the start of a page at the last transaction before a date, with or without a transaction at that date.
  static func cursor(ofAccount account: Int, before date: Date) -> PageCursor {
    PageCursor(after: StoreKey(components: "txn", account, date), order: .descending)
  }
}
