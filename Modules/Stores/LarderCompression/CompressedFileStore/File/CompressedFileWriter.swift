#if Compression
import Larder
import LarderFiles

/// The one that writes the file of a `CompressedFileStore`, one operation after another, on a thread of its own.
///
/// The base of a compaction is written on another thread, while this one goes on.
actor CompressedFileWriter {
  private nonisolated let executor: DispatchQueueExecutor
  private nonisolated let compactionExecutor = DispatchQueueExecutor(label: "Larder.CompressedFileStore.compaction")
  private nonisolated let information: StoreInformation
  nonisolated let contents: CompressedFileContents
  private var file: CompressedFile

  /// The compaction that goes on.
  private var compaction: Task<Void, any Error>?

  /// How much may be left uncopied when writing is held up for the rest of a compaction, and how often that is waited
  /// for.
  private static let smallRest: Int64 = 1 << 20
  private static let maximumRounds = 8

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private init(executor: DispatchQueueExecutor, information: StoreInformation, file: CompressedFile) {
    self.executor = executor
    self.information = information
    self.file = file
    contents = file.contents
  }

  /// Opens the file.
  ///
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value: Sendable>(
    _ configuration: StoreFileConfiguration, information: StoreInformation, cacheSize: Int,
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> (writer: CompressedFileWriter, codec: any Codec<Value>) {
    let executor = DispatchQueueExecutor(label: "Larder.CompressedFileStore")
    let (file, codec) = try await executor.run {
      try CompressedFile.open(configuration, cacheSize: cacheSize, choosing: codec)
    }
    return (CompressedFileWriter(executor: executor, information: information, file: file), codec)
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
  ///   - body: Gets the line of each key that is there, and makes the batch and the result.
  func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @Sendable ([ArraySlice<UInt8>?]) throws -> (changes: [Change<ArraySlice<UInt8>>], result: Result)
  ) throws -> Result {
    try checkOpen(for: .update)
    try Task.checkCancellation()
    guard let (index, reader) = contents.snapshot else { throw information.closedError(for: .update) }
    let lines = try reader.read(
      keys.map { ($0, index.find($0)) }, during: .update, isKept: true
    ) { _, line in
      line
    }
    let (changes, result) = try body(lines)
    try write(changes, during: .update)
    return result
  }

  private func write(_ changes: [Change<ArraySlice<UInt8>>], during operation: StoreOperation) throws {
    guard !changes.isEmpty else { return }
    try file.append(changes, during: operation)
    guard compaction == nil, file.isCompactionDue else { return }
    startCompaction()
  }

  func synchronize() throws {
    try checkOpen(for: .synchronize)
    guard information.access == .readWrite else { return }
    try file.synchronize()
  }

  func close() async throws {
    await contents.stopReading()
    await finishCompaction()
    // What goes wrong with it costs room only.
    if !contents.isClosed, file.isCompactionCheap { _ = await startCompaction().result }
    // Another call may have closed it while this one waited.
    guard !contents.isClosed else { return }
    try file.close()
  }

  // MARK: Compaction

  func compact() async throws {
    try checkOpen(for: .compact)
    try information.checkWritable(for: .compact)
    await finishCompaction()
    try checkOpen(for: .compact)
    try await startCompaction().value
  }

  /// Waits until no compaction goes on.
  private func finishCompaction() async {
    // What went wrong with it, whoever has started it hears.
    while let compaction { _ = await compaction.result }
  }

  @discardableResult
  private func startCompaction() -> Task<Void, any Error> {
    let task = Task {
      defer { compaction = nil }
      do {
        try await runCompaction()
      } catch {
        // Where nobody has asked for it nobody hears of it either, and nothing is lost: it is tried again later.
        file.postponeCompaction()
        throw error
      }
    }
    compaction = task
    return task
  }

  private func runCompaction() async throws {
    guard var running = try file.beginCompaction() else { return }
    let contents = contents
    do {
      running = try await inBackground(running) { try $0.writeBase(during: .compact) { contents.isAbandoned } }
      for _ in 0..<CompressedFileWriter.maximumRounds {
        let (source, end) = file.uncopied
        guard let source, end - running.copiedEnd > CompressedFileWriter.smallRest else { break }
        running = try await inBackground(running) { try $0.copy(of: source, upTo: end, during: .compact) }
      }
      try file.configuration.reportingFileErrors(during: .compact, message: "the file could not be replaced") {
        try file.finishCompaction(&running)
      }
    } catch {
      file.abandonCompaction(running)
      throw error
    }
  }

  /// Goes on with a compaction on its own thread, and makes durable what was written: at the end, when writing is held
  /// up, that takes as long as there is much of it.
  private func inBackground(
    _ compaction: FileCompaction, _ body: @escaping @Sendable (inout FileCompaction) throws -> Void
  ) async throws -> FileCompaction {
    let configuration = file.configuration
    return try await compactionExecutor.run {
      var compaction = compaction
      try configuration.reportingFileErrors(during: .compact, message: "the file could not be written anew") {
        try body(&compaction)
        try compaction.replacement.synchronize()
      }
      return compaction
    }
  }

  // MARK: Maintenance

  func statistics() throws -> StoreStatistics {
    try checkOpen(for: .statistics)
    return file.statistics()
  }

  func backup(to path: String, compacting isCompacted: Bool) throws {
    try checkOpen(for: .backup)
    try file.backup(to: path, compacting: isCompacted)
  }

  /// Reads everything from the disk and checks it.
  ///
  /// - Parameter check: Says what is wrong with the line of a key, or `nil`.
  func verify(_ check: @Sendable (StoreKey, ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    try checkOpen(for: .verify)
    guard let (index, reader) = contents.snapshot else { throw information.closedError(for: .verify) }
    var report = VerificationReport(entryCount: index.entries.count)
    do {
      let found = try file.rescan()
      report.findings = try file.configuration.reportingZlibErrors(during: .verify) {
        try file.findings(of: found, comparedWith: index, reader, check)
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(VerificationReport.Finding(key: error.key, place: file.path, message: error.message))
    }
    return report
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard !contents.isClosing else { throw information.closedError(for: operation) }
  }
}
#endif
