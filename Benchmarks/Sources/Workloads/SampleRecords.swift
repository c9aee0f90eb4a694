import Foundation
public import Larder
import LarderJSON
import LarderTesting

/// Records of an address book, a little more than 200 bytes of JSON each, the same ones in every run.
public enum SampleRecords {
  /// The key of a record.
  public static func key(_ number: Int) -> StoreKey {
    StoreKey("customer:\(number + 10_000_000)")
  }

  /// The numbers below a bound, in no order.
  public static func shuffledNumbers(_ count: Int) -> [Int] {
    var generator = SeededGenerator(seed: 1)
    return (0..<count).shuffled(using: &generator)
  }

  /// A record.
  ///
  /// - Throws: Never; the text is JSON.
  public static func record(_ number: Int) throws -> JSONText {
    var generator = SeededGenerator(seed: UInt64(number))
    let street = String(generator.next(), radix: 36)
    let note = (0..<5).map { _ in String(generator.next(), radix: 36) }.joined(separator: " ")
    return try JSONText(
      """
      {"number":\(number),"name":"Ada Lovelace \(number)","street":"\(street) \(number % 100)","city":"London",\
      "email":"ada.\(number)@example.org","active":\(number.isMultiple(of: 2)),"note":"\(note)"}
      """)
  }

  /// Writes the document of a `JSONFileStore` with records.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - count: How many records.
  ///   - isShuffled: Whether they stand in no order, as a person or another program may have left them.
  /// - Throws: What the file system throws.
  public static func writeDocument(at path: String, count: Int, isShuffled: Bool = false) throws {
    var text = "{\"larder\":1,\"entries\":{\n"
    let numbers = isShuffled ? shuffledNumbers(count) : Array(0..<count)
    for (index, number) in numbers.enumerated() {
      text += "\"\(key(number).string ?? "")\":\(try record(number).description)\(index + 1 < count ? "," : "")\n"
    }
    try Data((text + "}}\n").utf8).write(to: URL(filePath: path))
  }

  /// Opens a `JSONFileStore` with records.
  static func openStore(
    count: Int, durability: Durability, in folder: ScratchFolder
  ) async throws -> JSONFileStore<JSONText> {
    let path = folder.newPath()
    try writeDocument(at: path, count: count)
    return try await JSONFileStore(path: path, codec: .jsonText, durability: durability)
  }
}
