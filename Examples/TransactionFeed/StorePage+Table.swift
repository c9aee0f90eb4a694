import ExampleSupport
import Foundation
import Larder

extension StorePage<Transaction> {
  /// The page as text.
  var table: TextTable { table(first: .max) }

  /// Returns the first rows of the page as text.
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
  /// Returns an amount of money: -12.34.
  static func amount(cents: Int64) -> String {
    let (units, rest) = cents.magnitude.quotientAndRemainder(dividingBy: 100)
    return "\(cents < 0 ? "-" : "")\(units).\(rest < 10 ? "0" : "")\(rest)"
  }
}
