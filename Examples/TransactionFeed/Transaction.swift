import Foundation
import Larder
import LarderCBOR

/// Money that came to an account, or left it.
struct Transaction: Codable, Hashable, Sendable {
  var id: UUID
  var account: Int
  var date: Date

  /// The amount in cents; negative where money left the account.
  var amount: Int64

  /// Who paid, or was paid.
  var counterparty: String

  /// What it was for.
  var purpose: String
}

extension Transaction {
  /// The key: by account, then by date; the identifier tells apart what came at the same moment.
  var key: StoreKey {
    StoreKey(components: "txn", account, date, id)
  }

  /// The keys of all transactions of an account, the oldest first.
  static func range(ofAccount account: Int) -> KeyRange {
    .prefix(components: "txn", account)
  }

  /// The place of a page that begins with the last transaction before a date; there need not be one at that date.
  static func cursor(ofAccount account: Int, before date: Date) -> PageCursor {
    PageCursor(after: StoreKey(components: "txn", account, date), order: .descending)
  }
}

/// Its own way into CBOR and back: the same bytes as by `Codable`, three times as fast.
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
