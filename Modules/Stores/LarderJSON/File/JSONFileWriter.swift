import Larder
import LarderFiles

/// The writer of a `JSONFileStore`'s files. It runs one operation after another on its own thread.
actor JSONFileWriter {
  private nonisolated let executor: DispatchQueueExecutor
  nonisolated let information: StoreInformation
  nonisolated let contents: JSONFileContents
  nonisolated let codecName: String
  private var file: JSONFile

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private init(executor: DispatchQueueExecutor, information: StoreInformation, file: JSONFile) {
    self.executor = executor
    self.information = information
    self.file = file
    contents = file.contents
    codecName = file.codecName
  }

  /// Opens the files.
  ///
  /// - Throws: ``StoreError``.
  static func open(
    _ configuration: StoreFileConfiguration, sizeLimit: Int64 = JSONFile.maximumSize, newCodecName: String
  ) async throws -> JSONFileWriter {
    let executor = DispatchQueueExecutor(label: "Larder.JSONFileStore")
    let file = try await executor.run {
      try JSONFile.open(configuration, sizeLimit: sizeLimit, newCodecName: newCodecName)
    }
    let information = StoreInformation(
      name: configuration.name, durability: Durability(configuration.durability), sharing: .exclusive,
      access: configuration.access)
    return JSONFileWriter(executor: executor, information: information, file: file)
  }

  /// Writes a batch, then makes it visible to readers.
  func apply(_ changes: [Change<ArraySlice<UInt8>>]) throws {
    try checkOpen(for: .apply)
    try Task.checkCancellation()
    try write(changes, during: .apply)
  }

  /// Reads values, computes a batch, writes it, and makes it visible to readers.
  ///
  /// No other write runs in between.
  ///
  /// - Parameters:
  ///   - keys: The keys to read.
  ///   - body: A closure that receives the text of each value, and returns the batch and the result.
  func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @Sendable ([ArraySlice<UInt8>?]) throws -> (changes: [Change<ArraySlice<UInt8>>], result: Result)
  ) throws -> Result {
    try checkOpen(for: .update)
    try Task.checkCancellation()
    let (changes, result) = try body(contents.values(forKeys: keys))
    try write(changes, during: .update)
    return result
  }

  private func write(_ changes: [Change<ArraySlice<UInt8>>], during operation: StoreOperation) throws {
    guard !changes.isEmpty else { return }
    try file.append(changes, during: operation)
    contents.apply(changes)
    file.foldIfDue()
  }

  func synchronize() throws {
    try checkOpen(for: .synchronize)
    try file.synchronize()
  }

  func close() async throws {
    await contents.stopReading()
    // Another call may have closed the store in the meantime.
    guard !contents.isClosed else { return }
    try file.close()
  }

  func statistics() throws -> StoreStatistics {
    try checkOpen(for: .statistics)
    let sizes = file.sizes
    return StoreStatistics(
      entryCount: contents.snapshot.map.count, bytesOnDisk: sizes.document + sizes.journal, details: file.details)
  }

  func compact() throws {
    try checkOpen(for: .compact)
    try information.checkWritable(for: .compact)
    try file.fold(during: .compact)
  }

  func backup(to path: String) throws {
    try checkOpen(for: .backup)
    try file.backup(to: path)
  }

  /// Reads all entries from the disk and checks them.
  ///
  /// - Parameter check: A closure that returns a description of the problem with the text of a value, or `nil` if there
  ///   is none.
  func verify(_ check: @Sendable (StoreKey, ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    try checkOpen(for: .verify)
    let entries = contents.snapshot
    var report = VerificationReport(entryCount: entries.map.count)
    do {
      let (loaded, stored) = try file.reread()
      report.findings = loaded.damages
      let lines = TextLines(loaded.text)
      stored.map.forEach { key, value in
        guard let message = check(key, value) else { return }
        let isInDocument =
          loaded.document.entries[key].map { $0.startIndex == value.startIndex && $0 == value } ?? false
        let place = isInDocument ? file.place(ofOffset: value.startIndex, in: lines) : file.journalPlace
        report.findings.append(VerificationReport.Finding(key: key, place: place, message: message))
      }
      let holes = stored.holes + entries.holes
      for key in JSONFileWriter.differences(entries.map, stored.map) where !holes.contains(where: { $0.contains(key) })
      {
        report.findings.append(
          VerificationReport.Finding(
            key: key, place: file.configuration.path, message: "the entry on disk differs from the one that was written"
          ))
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(
        VerificationReport.Finding(key: error.key, place: file.configuration.path, message: error.message))
    }
    return report
  }

  /// Returns the keys whose values differ between two maps, ignoring whitespace.
  private static func differences(
    _ left: SortedMap<ArraySlice<UInt8>>, _ right: SortedMap<ArraySlice<UInt8>>
  ) -> [StoreKey] {
    func compacted(_ text: ArraySlice<UInt8>) -> [UInt8] {
      var bytes: [UInt8] = []
      JSONWriting.append(compacted: text, to: &bytes)
      return bytes
    }
    var keys: [StoreKey] = []
    left.forEach { key, value in
      if right[key] != value, right[key].map(compacted) != compacted(value) { keys.append(key) }
    }
    right.forEach { key, _ in
      if !left.contains(key) { keys.append(key) }
    }
    return keys.sorted()
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard !contents.isClosing else { throw information.closedError(for: operation) }
  }
}

extension JSONFileWriter: UntypedStore {
  nonisolated func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
    AnyDataStore(try JSONFileStore(self, codec: codec))
  }
}

/// The lines of a text, for converting offsets to lines and columns.
struct TextLines {
  /// The offset of each line except the first.
  private let starts: [Int]

  /// Finds the lines of a text.
  init(_ text: [UInt8]) {
    starts = text.indices.filter { text[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
  }

  /// Returns the line and column of a byte, both counted from 1.
  func place(ofOffset offset: Int) -> (line: Int, column: Int) {
    var low = 0
    var high = starts.count
    while low < high {
      let middle = low + (high - low) / 2
      if starts[middle] <= offset { low = middle + 1 } else { high = middle }
    }
    return (low + 1, offset - (low == 0 ? 0 : starts[low - 1]) + 1)
  }
}
