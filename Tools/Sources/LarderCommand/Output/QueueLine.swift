import Foundation
import Larder
import LarderExpiry
import LarderQueue

/// What the tool prints of a queue: one line of JSON each.
enum QueueLine {
  /// Appends the line of an item that was enqueued, without its end.
  static func append(_ item: EnqueuedItem, to bytes: inout [UInt8]) {
    EntryLine.append(key: item.key, [("isDuplicate", "\(item.isDuplicate)")], to: &bytes)
  }

  /// Appends the line of a delivery, without its end.
  static func append(_ delivery: Delivery<Expiring<JSONText>>, to bytes: inout [UInt8]) {
    EntryLine.append(
      key: delivery.key, value: delivery.value.value,
      [("attempt", "\(delivery.attempt)"), ("receipt", "\"\(delivery.receipt)\"")], to: &bytes)
  }

  /// Appends the line of a dead letter, without its end.
  static func append(_ letter: DeadLetter<Expiring<JSONText>>, to bytes: inout [UInt8]) {
    var members: [(name: String, json: String)] = [
      ("attempts", "\(letter.attempts)"), ("reason", "\"\(letter.reason)\""),
      ("date", "\"\(letter.date.formatted(.iso8601))\""), ("sequence", "\(letter.sequence)"),
    ]
    switch letter.value {
    case .success(let value):
      EntryLine.append(key: letter.key, value: value.value, members, to: &bytes)
    case .failure(let error):
      members.insert(("value", "null"), at: 0)
      members.append(("message", "\(JSONText(string: error.fullMessage))"))
      EntryLine.append(key: letter.key, members, to: &bytes)
    }
  }

  /// Appends the line of the items by state, without its end.
  static func append(_ counts: QueueCounts, oldestAge: Duration?, to bytes: inout [UInt8]) {
    let age = oldestAge.map { String(format: "%.3f", $0 / .seconds(1)) } ?? "null"
    let line = """
      {"waiting":\(counts.waiting),"delayed":\(counts.delayed),"leased":\(counts.leased),"dead":\(counts.dead),\
      "oldestAge":\(age)}
      """
    bytes.append(contentsOf: line.utf8)
  }
}
