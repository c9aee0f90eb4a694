import Larder
import LarderFiles

/// The one that writes the files of a `JSONFileStore`, one operation after another, on a thread of its own.
actor JSONFileWriter {
  private nonisolated let executor: DispatchQueueExecutor
  private nonisolated let information: StoreInformation
  nonisolated let contents: JSONFileContents
  private var file: JSONFile

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private init(executor: DispatchQueueExecutor, information: StoreInformation, file: JSONFile) {
    self.executor = executor
    self.information = information
    self.file = file
    contents = file.contents
  }

  /// Opens the files.
  ///
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value: Sendable>(
    _ configuration: StoreFileConfiguration, information: StoreInformation, sizeLimit: Int64,
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> (writer: JSONFileWriter, codec: any Codec<Value>) {
    let executor = DispatchQueueExecutor(label: "Larder.JSONFileStore")
    let (file, codec) = try await executor.run {
      try JSONFile.open(configuration, sizeLimit: sizeLimit, choosing: codec)
    }
    return (JSONFileWriter(executor: executor, information: information, file: file), codec)
  }

  /// Writes a batch, then shows it to the readers.
  func apply(_ changes: [Change<ArraySlice<UInt8>>]) throws {
    try checkOpen(for: .apply)
    try Task.checkCancellation()
    try write(changes, during: .apply)
  }

  /// Reads, computes a batch, writes it, and shows it to the readers, with no other write between.
  ///
  /// - Parameters:
  ///   - keys: The keys to read.
  ///   - body: Gets the text of each value, and makes the batch and the result.
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
    // Another call may have closed it while this one waited.
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

  /// Reads everything from the disk and checks it.
  ///
  /// - Parameter check: Says what is wrong with the text of a value, or `nil`.
  func verify(_ check: @Sendable (ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    try checkOpen(for: .verify)
    let entries = contents.snapshot
    var report = VerificationReport(entryCount: entries.map.count)
    do {
      let (loaded, stored) = try file.reread()
      report.findings = loaded.damages
      let lines = TextLines(loaded.text)
      stored.map.forEach { key, value in
        guard let message = check(value) else { return }
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
            key: key, place: file.configuration.path, message: "the entry on disk is not the one that was written"))
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(
        VerificationReport.Finding(key: error.key, place: file.configuration.path, message: error.message))
    }
    return report
  }

  /// The keys whose values two maps do not have in common, however they are laid out.
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
