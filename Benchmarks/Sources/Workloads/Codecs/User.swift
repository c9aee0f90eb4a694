import Foundation
import Larder

/// A record of six fields, as in most stores.
struct User: Codable, Sendable, Equatable {
  var id: Int
  var name: String
  var email: String
  var age: Int
  var created: Date
  var tags: [String]

  /// Creates one of many similar records.
  init(number: Int) {
    id = 100_000 + number
    name = "Ada Lovelace \(number % 10)"
    email = "ada.lovelace.\(1000 + number % 1000)@example.org"
    age = 36 + number % 20
    created = Date(timeIntervalSinceReferenceDate: 700_000_000.123456 + Double(number) * 1000.37)
    tags = ["admin", "staff", "beta"]
  }
}
