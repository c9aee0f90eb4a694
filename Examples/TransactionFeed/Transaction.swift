import Foundation
import Larder
import LarderCBOR

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

/// Direct encoding as CBOR: the same bytes as through `Codable`, three times as fast.
extension Transaction: CBORConvertible {
  func write(to writer: inout CBORWriter) throws {
    try writer.writeMap { map in
      try map.write(id, forKey: "id")
      try map.write(account, forKey: "account")
      try map.write(date, forKey: "date")
      try map.write(amount, forKey: "amount")
      try map.write(counterparty, forKey: "counterparty")
      try map.write(purpose, forKey: "purpose")
    }
  }

  init(from reader: inout CBORReader) throws {
    self = try reader.readMap { map in
      try Transaction(
        id: map.read(forKey: "id"), account: map.read(forKey: "account"), date: map.read(forKey: "date"),
        amount: map.read(forKey: "amount"), counterparty: map.read(forKey: "counterparty"),
        purpose: map.read(forKey: "purpose"))
    }
  }
}
