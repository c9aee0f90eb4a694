import Foundation
public import Larder
import LarderJSON
import LarderTesting

/// Records of an address book, slightly more than 200 bytes of JSON each, the same in every run.
public enum SampleRecords {
  /// Returns the key of a record.
  public static func key(_ number: Int) -> StoreKey {
    StoreKey("customer:\(number + 10_000_000)")
  }

  /// Returns the numbers below a bound, in random order.
  public static func shuffledNumbers(_ count: Int) -> [Int] {
    var generator = SeededGenerator(seed: 1)
    return (0..<count).shuffled(using: &generator)
  }

  /// Returns a record.
  ///
  /// - Throws: Never, because the text is valid JSON.
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
  ///   - path: The path of the file.
  ///   - count: The number of records.
  ///   - isShuffled: A Boolean value that indicates whether the records are in random order, as a person or another
  ///     program may leave them.
  /// - Throws: The error of the file system.
  public static func writeDocument(at path: String, count: Int, isShuffled: Bool = false) throws {
    var text = "{\"larder\":2,\"entries\":{\n"
    let numbers = isShuffled ? shuffledNumbers(count) : Array(0..<count)
    for (index, number) in numbers.enumerated() {
      text += "\"\(key(number).string ?? "")\":\(try record(number).description)\(index + 1 < count ? "," : "")\n"
    }
    try Data((text + "}}\n").utf8).write(to: URL(filePath: path))
  }

  /// Opens a `JSONFileStore` with records.
  static func openStore(
    count: Int, durability: Durability.File, in folder: ScratchFolder
  ) async throws -> JSONFileStore<JSONText> {
    let path = folder.newPath()
    try writeDocument(at: path, count: count)
    return try await JSONFileStore(path: path, codec: .jsonText, durability: durability)
  }
}
