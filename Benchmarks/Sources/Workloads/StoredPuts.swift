import Foundation
import Larder
import LarderJSON

/// Writes to a `JSONFileStore`, whose cost does not depend on the size of the store.
enum StoredPuts {
  static let comparisons = [
    Comparison(
      puts(400, entryCount: 100_000, durability: .buffered),
      beside: [
        Comparison.Yardstick(puts(400, entryCount: 1000, durability: .buffered), limit: 2),
        Comparison.Yardstick(appends(400, isDurable: false)),
      ]),
    // Separate from the above, because each round leaves its document in the caches of the processor.
    Comparison(
      puts(400, entryCount: 100_000, durability: .buffered),
      beside: [Comparison.Yardstick(rewriting), Comparison.Yardstick(rewritingAtomically)]),
    // With this number of puts the journal grows as large as the document, so that each round folds it at least once.
    Comparison(
      puts(100_000, entryCount: 100_000, durability: .buffered),
      beside: [Comparison.Yardstick(puts(100_000, entryCount: 1000, durability: .buffered), limit: 2)], roundCount: 5),
    Comparison(
      puts(20, entryCount: 100_000, durability: .synced),
      beside: [
        Comparison.Yardstick(puts(20, entryCount: 1000, durability: .synced), limit: 2),
        Comparison.Yardstick(appends(20, isDurable: true)),
      ]),
  ]

  private static func puts(_ count: Int, entryCount: Int, durability: Durability.File) -> Workload {
    let folding = count > entryCount / 2 ? ", folding included" : ""
    let name = "put into a JSONFileStore of \(entryCount / 1000),000 entries, .\(durability)\(folding)"
    return Workload(name, operationCount: count) { folder in
      let store = try await SampleRecords.openStore(count: entryCount, durability: durability, in: folder)
      let numbers = SampleRecords.shuffledNumbers(entryCount)
      let records = try (0..<100).map(SampleRecords.record)
      return {
        for index in 0..<count {
          let key = SampleRecords.key(numbers[index % entryCount])
          try await store.setValue(records[index % records.count], forKey: key)
        }
      }
    }
  }

  private static func appends(_ count: Int, isDurable: Bool) -> Workload {
    Workload("append of the same number of bytes, by write\(isDurable ? " and fdatasync" : "")", operationCount: count)
    {
      folder in
      let file = try PlainFile(appendingTo: folder.newPath())
      let lines = try (0..<100).map { number in
        let change = "{\"set\":\(SampleRecords.key(number)),\"value\":\(try SampleRecords.record(number))}"
        return Array("{\"crc32c\":\"0eee2f8f\",\"durable\":100000,\"changes\":[\(change)]}\n".utf8)
      }
      return {
        for index in 0..<count {
          try file.append(lines[index % lines.count], isDurable: isDurable)
        }
      }
    }
  }

  private static let rewriting = Workload("rewriting the document of 100,000 entries, by write") { folder in
    let path = folder.newPath()
    try SampleRecords.writeDocument(at: path, count: 100_000)
    let document = try Array(Data(contentsOf: URL(filePath: path)))
    try FileManager.default.removeItem(atPath: path)
    return {
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
      try PlainFile(appendingTo: path).append(document, isDurable: false)
    }
  }

  private static let rewritingAtomically = Workload(
    "rewriting the document of 100,000 entries, by Data.write(options: .atomic)"
  ) { folder in
    let path = folder.newPath()
    try SampleRecords.writeDocument(at: path, count: 100_000)
    let document = try Data(contentsOf: URL(filePath: path))
    return {
      try document.write(to: URL(filePath: path), options: .atomic)
    }
  }
}
