#if Compression
import LarderTesting

/// Random records in JSON that resemble those of applications.
enum SampleRecords {
  private static let firstNames = [
    "Ada", "Alan", "Grace", "Edsger", "Barbara", "Donald", "Tony", "Niklaus", "Dennis", "Ken", "Brian", "Margaret",
    "Katherine", "Linus", "Leslie", "Radia", "Frances", "Jean", "Adele", "Hedy",
  ]
  private static let lastNames = [
    "Lovelace", "Turing", "Hopper", "Dijkstra", "Liskov", "Knuth", "Hoare", "Wirth", "Ritchie", "Thompson",
    "Kernighan", "Hamilton", "Johnson", "Torvalds", "Lamport", "Perlman", "Allen", "Bartik", "Goldberg", "Lamarr",
  ]
  private static let words = [
    "order", "shipment", "customer", "returned", "payment", "pending", "invoice", "overdue", "please", "call", "before",
    "delivery", "fragile", "handle", "with", "care", "gift", "wrapped", "leave", "at", "the", "door", "neighbour",
    "signed", "for", "parcel", "second", "attempt", "address", "corrected", "refund", "issued", "priority", "express",
  ]

  /// Returns users of about 150 bytes each.
  static func users(_ count: Int, seed: UInt64) -> [[UInt8]] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { _ in Array("{\(user(by: &generator))}".utf8) }
  }

  /// Returns customers with their latest orders, of about 800 bytes each.
  static func customers(_ count: Int, seed: UInt64) -> [[UInt8]] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { _ in
      let orders = (0..<4).map { _ in
        """
        {"number":"\(String(generator.next() >> 32, radix: 16))","total":\(number(in: 1...500, by: &generator)).\
        \(number(in: 10...99, by: &generator)),"currency":"EUR","state":"\(pick(["paid", "pending"], by: &generator))",\
        "placed":"\(day(by: &generator))"}
        """
      }
      let note = (0..<24).map { _ in pick(words, by: &generator) }.joined(separator: " ")
      return Array(
        """
        {\(user(by: &generator)),"address":{"street":"\(number(in: 1...200, by: &generator)) \
        \(pick(lastNames, by: &generator)) Street","city":"\(pick(["London", "Paris", "Oslo"], by: &generator))",\
        "postcode":"\(number(in: 10_000...99_999, by: &generator))"},"orders":[\(orders.joined(separator: ","))],\
        "note":"\(note)"}
        """.utf8)
    }
  }

  private static func user(by generator: inout SeededGenerator) -> String {
    let first = pick(firstNames, by: &generator)
    let last = pick(lastNames, by: &generator)
    return """
      "id":\(number(in: 10_000...99_999, by: &generator)),"name":"\(first) \(last)",\
      "email":"\(first.lowercased()).\(last.lowercased())@example.org","age":\(number(in: 18...90, by: &generator)),\
      "created":"\(day(by: &generator))T\(number(in: 10...23, by: &generator)):\(number(in: 10...59, by: &generator)):\
      \(number(in: 10...59, by: &generator))Z","tags":["\(pick(["staff", "guest", "admin"], by: &generator))",\
      "\(pick(["beta", "trial", "vip"], by: &generator))"]
      """
  }

  private static func day(by generator: inout SeededGenerator) -> String {
    "20\(number(in: 10...26, by: &generator))-\(number(in: 10...12, by: &generator))-\(number(in: 10...28, by: &generator))"
  }

  private static func number(in range: ClosedRange<Int>, by generator: inout SeededGenerator) -> Int {
    Int.random(in: range, using: &generator)
  }

  private static func pick(_ choices: [String], by generator: inout SeededGenerator) -> String {
    choices[Int.random(in: 0..<choices.count, using: &generator)]
  }
}
#endif
