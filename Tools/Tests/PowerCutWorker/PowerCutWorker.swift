import ArgumentParser
import Foundation
import Larder
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderSQLite
import LarderTesting

/// A process that writes a known history to a store, and checks that the store has one of its states after a power cut.
///
/// `Scripts/power-cuts` runs it on a file system whose block writes it records.
@main
struct PowerCutWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [Run.self, Check.self])

  struct Options: ParsableArguments {
    @Argument(help: "The URL of the store.") var store: String
    @Argument(help: "The file that records started and acknowledged steps.") var record: String
    @Option(help: "The seed of the history.") var seed: UInt64
    @Flag(help: "Open the store with buffered durability. A step counts as acknowledged once it is synchronized.")
    var buffered = false

    func open() async throws -> AnyDataStore<String> {
      let registry = StoreRegistry(providers: [
        JSONFileStoreProvider(), CompressedFileStoreProvider(), LMDBStoreProvider(), QueueStoreProvider(),
        SQLiteStoreProvider(),
      ])
      return try await registry.open(
        store, codec: .json(String.self), options: StoreOptions(durability: buffered ? .buffered : .synced))
    }
  }

  struct Run: AsyncParsableCommand {
    @OptionGroup var options: Options
    @Option(help: "The number of steps to make, including the steps of earlier runs.") var steps: Int

    func run() async throws {
      let record = try StepRecord(options.record)
      var history = StepHistory(seed: options.seed)
      var store = try await options.open()
      try await history.find(store, from: try record.acknowledged(), upTo: try record.started())
      while history.step < steps {
        let batch = history.advance()
        try record.append("S \(history.step)")
        try await store.apply(batch)
        if options.buffered, history.step.isMultiple(of: 20) { try await store.synchronize() }
        if !options.buffered || history.step.isMultiple(of: 20) { try record.append("A \(history.step)") }
        if history.step.isMultiple(of: 25) { try await compact(store) }
        if history.step.isMultiple(of: 40) {
          try await store.close()
          store = try await options.open()
        }
      }
      try await store.close()
      try record.append("A \(history.step)")
    }

    private func compact(_ store: AnyDataStore<String>) async throws {
      do {
        try await store.maintenance?.compact()
      } catch StoreError.Code.unsupported {
        // Some kinds of store have no space to reclaim.
      }
    }
  }

  struct Check: AsyncParsableCommand {
    @OptionGroup var options: Options

    func run() async throws {
      let record = try StepRecord(options.record)
      var history = StepHistory(seed: options.seed)
      let (acknowledged, started) = (try record.acknowledged(), try record.started())
      var store = try await options.open()
      try await history.find(store, from: acknowledged, upTo: started)
      let found = history.step
      // The store must accept and keep further writes.
      try await store.apply(history.advance())
      try await store.close()
      store = try await options.open()
      try await history.find(store, from: history.step, upTo: history.step)
      try await store.close()
      print("ok: step \(found) of \(acknowledged)...\(started)")
    }
  }
}

/// The record of started and acknowledged steps, in a file outside the file system whose power is cut.
struct StepRecord {
  private let handle: FileHandle
  private let path: String

  init(_ path: String) throws {
    self.path = path
    if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
    handle = try FileHandle(forWritingTo: URL(filePath: path))
    try handle.seekToEnd()
  }

  func append(_ line: String) throws {
    try handle.write(contentsOf: Data("\(line)\n".utf8))
  }

  func started() throws -> Int { try latest("S ") }
  func acknowledged() throws -> Int { try latest("A ") }

  private func latest(_ mark: String) throws -> Int {
    // A truncated record ends in the middle of a line.
    try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      .dropLast()
      .filter { $0.hasPrefix(mark) }.compactMap { Int($0.dropFirst(mark.count)) }.max() ?? 0
  }
}

/// A history of batches that a seed determines, and the entries after each batch.
struct StepHistory {
  /// The error for a store that holds no state of the history.
  struct Lost: Error, CustomStringConvertible {
    var description: String
  }

  private let seed: UInt64
  private(set) var step = 0
  private var entries: [StoreKey: String] = [:]

  init(seed: UInt64) {
    self.seed = seed
  }

  /// Advances by one step.
  ///
  /// - Returns: The batch of the step.
  mutating func advance() -> ChangeBatch<String> {
    step += 1
    var generator = SeededGenerator(seed: seed &+ UInt64(step))
    var batch = ChangeBatch<String>()
    for number in 0..<Int.random(in: 1...4, using: &generator) {
      let key = StoreKey("k\(Int.random(in: 10..<50, using: &generator))")
      switch Int.random(in: 0..<50, using: &generator) {
      case 0:
        let range: KeyRange = key..<StoreKey("k\(Int.random(in: 10..<50, using: &generator))")
        batch.removeAll(in: range)
        entries = entries.filter { !range.contains($0.key) }
      case 1..<10:
        batch.removeValue(forKey: key)
        entries[key] = nil
      default:
        let padding = String(repeating: "x", count: .random(in: 0...3000, using: &generator))
        let value = "\(step).\(number) \(padding)"
        batch.setValue(value, forKey: key)
        entries[key] = value
      }
    }
    return batch
  }

  /// Advances to the state that a store holds.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - acknowledged: The last step that must not be lost.
  ///   - started: The last step that can have been written.
  /// - Throws: ``Lost`` if the store holds no state from the one step to the other.
  mutating func find(_ store: AnyDataStore<String>, from acknowledged: Int, upTo started: Int) async throws {
    var found: [StoreKey: String] = [:]
    for entry in try await store.entries(in: .all, limit: .max, order: .ascending) { found[entry.key] = entry.value }
    while step < acknowledged { _ = advance() }
    while entries != found {
      guard step < started else {
        let keys = Set(found.keys).union(entries.keys).filter { found[$0] != entries[$0] }
        let latest = found.values.compactMap { Int($0.prefix { $0 != "." }) }.max() ?? 0
        throw Lost(
          description: "no state of the steps \(acknowledged) to \(started): the latest value is of step \(latest), "
            + "and \(keys.count) keys differ from step \(started)")
      }
      _ = advance()
    }
  }
}
