import Foundation
import Larder
import LarderCompressedFile
import LarderJSON
import LarderTesting

/// The size of a `CompressedFileStore` of real records, and the time to read and append.
public enum CompressedFiles {
  static let comparisons = [
    Comparison(
      puts(entryCount: 100_000),
      beside: [Comparison.Yardstick(puts(entryCount: 1000), limit: 2)])
  ]

  private static func puts(entryCount: Int) -> Workload {
    let count = 400
    let name = "put into a compacted CompressedFileStore of \(entryCount / 1000),000 entries, .buffered"
    return Workload(name, operationCount: count) { folder in
      let store = try await CompressedFileStore<JSONText>(
        path: folder.newPath(), codec: .jsonText, durability: .buffered)
      try await fill(store, with: entryCount)
      let records = try (0..<100).map(SampleRecords.record)
      return {
        for index in 0..<count {
          try await store.setValue(records[index % records.count], forKey: SampleRecords.key(index % entryCount))
        }
      }
    }
  }

  private static func fill(_ store: CompressedFileStore<JSONText>, with count: Int) async throws {
    for start in stride(from: 0, to: count, by: 1000) {
      var batch = ChangeBatch<JSONText>()
      for number in start..<min(start + 1000, count) {
        batch.setValue(try SampleRecords.record(number), forKey: SampleRecords.key(number))
      }
      try await store.apply(batch)
    }
    try await store.compact()
  }

  /// Creates a store of small records.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - count: The number of records.
  /// - Throws: The error of the store.
  public static func make(at path: String, count: Int) async throws {
    let store = try await CompressedFileStore<JSONText>(path: path, codec: .jsonText, durability: .buffered)
    try await fill(store, with: count)
    try await store.close()
  }

  /// The figures of the records of the package index.
  public struct Figures: Sendable {
    /// The size of the compacted file, in bytes.
    public var store = 0
    /// The size of the same lines by `gzip -6`, in bytes.
    public var gzip = 0
    /// The size of a `JSONFileStore` of the same records, in bytes.
    public var json = 0
    /// The time to read a record whose block is not in memory.
    public var read: Duration = .zero
  }

  /// Measures a store of the records of the package index.
  ///
  /// - Returns: The figures, or `nil` if this machine has no such index.
  /// - Throws: The error of a store or the file system.
  public static func measure() async throws -> Figures? {
    guard let records = try PackageRecords.all() else { return nil }
    let folder = try ScratchFolder()
    let batch = ChangeBatch(records.map { BatchChange.set($0.key, $0.value) })
    var figures = Figures()

    let path = folder.newPath()
    var store = try await CompressedFileStore<JSONText>(path: path, codec: .jsonText, durability: .buffered)
    try await store.apply(batch)
    try await store.compact()
    try await store.close()
    figures.store = try size(of: path)
    figures.gzip = try compressedSize(of: path)

    let jsonPath = folder.newPath()
    let json = try await JSONFileStore<JSONText>(path: jsonPath, codec: .jsonText, durability: .buffered)
    try await json.apply(batch)
    try await json.close()
    figures.json = try size(of: jsonPath)

    store = try await CompressedFileStore(path: path, codec: .jsonText, durability: .buffered, cacheSize: 0)
    var generator = SeededGenerator(seed: 1)
    let keys = records.map(\.key).shuffled(using: &generator).prefix(2000)
    let times = try (0..<9).map { _ in
      try ContinuousClock().measure {
        for key in keys { consume(try store.value(forKey: key)) }
      }
    }
    figures.read = times.sorted()[times.count / 2] / keys.count
    try await store.close()
    try folder.remove()
    return figures
  }

  private static func size(of path: String) throws -> Int {
    try Data(contentsOf: URL(filePath: path)).count
  }

  /// Returns the size of the same lines by `gzip -6`, in bytes.
  private static func compressedSize(of path: String) throws -> Int {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["sh", "-c", "gzip -dc < \"$1\" | gzip -6 | wc -c", "sh", path]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0, let size = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw CocoaError(.executableLoad)
    }
    return size
  }
}
