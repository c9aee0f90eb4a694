import ExampleSupport
import Foundation
import Larder

extension StorePage<Transaction> {
  /// The page as people read it.
  var table: TextTable { table(first: .max) }

  /// The first rows of the page as people read them.
  func table(first count: Int) -> TextTable {
    var table = TextTable(alignments: [.left, .right, .left, .left])
    for transaction in entries.prefix(count).map(\.value) {
      table.append([
        transaction.date.formatted(Date.ISO8601FormatStyle(dateTimeSeparator: .space)),
        TextFormat.amount(cents: transaction.amount), transaction.counterparty, transaction.purpose,
      ])
    }
    return table
  }
}

extension TextFormat {
  /// An amount of money: -12.34.
  static func amount(cents: Int64) -> String {
    let (units, rest) = cents.magnitude.quotientAndRemainder(dividingBy: 100)
    return "\(cents < 0 ? "-" : "")\(units).\(rest < 10 ? "0" : "")\(rest)"
  }
}
