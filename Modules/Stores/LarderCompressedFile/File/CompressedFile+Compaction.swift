#if Compression
import Larder
import LarderFiles

/// Compaction in the background. The base of the new file is written on another thread, while this one continues.
extension FileWriter<CompressedFile> {
  /// Writes a batch, and starts a compaction if the batch makes one due.
  func apply<Result: Sendable>(
    during operation: StoreOperation, _ body: @Sendable (inout CompressedFile) throws -> Result
  ) throws -> Result {
    let lastBatch = file.layout.lastBatch
    let result = try write(operation, body)
    if file.layout.lastBatch > lastBatch, file.compaction == nil, file.isCompactionDue { startCompaction() }
    return result
  }

  /// Compacts the file, after a running compaction.
  func compact() async throws {
    try checkOpen(for: .compact)
    try information.checkWritable(for: .compact)
    await finishCompaction()
    try checkOpen(for: .compact)
    try await startCompaction().value
  }

  /// Waits until no compaction is running.
  private func finishCompaction() async {
    // The caller that started the compaction receives its error.
    while let compaction = file.compaction { _ = await compaction.result }
  }

  @discardableResult
  private func startCompaction() -> Task<Void, any Error> {
    let task = Task {
      defer { file.compaction = nil }
      do {
        try await runCompaction()
      } catch {
        // An automatic compaction has no caller that receives the error. Nothing is lost, and a later write tries
        // again.
        file.postponeCompaction()
        throw error
      }
    }
    file.compaction = task
    return task
  }

  private func runCompaction() async throws {
    guard var running = try file.beginCompaction() else { return }
    var copiedEnd = file.layout.end
    defer { file.uncopied = nil }
    do {
      running = try await inBackground(running) { try $0.writeBase(during: .compact) }
      for _ in 0..<CompressedFile.maximumRounds {
        guard file.layout.end - copiedEnd > CompressedFile.smallRest, let (changes, lines) = file.takeUncopied() else {
          break
        }
        copiedEnd = file.layout.end
        running = try await inBackground(running) { try $0.copy(changes, by: lines, during: .compact) }
      }
      try file.configuration.reportingFileErrors(during: .compact, message: "the file could not be replaced") {
        try file.finishCompaction(&running)
      }
    } catch {
      running.replacement.abandon()
      throw error
    }
  }

  /// Runs a step of a compaction on its own thread, and makes its output durable.
  ///
  /// Otherwise all of it would have to be made durable at the end, when writes are suspended.
  private func inBackground(
    _ compaction: FileCompaction, _ body: @escaping @Sendable (inout FileCompaction) throws -> Void
  ) async throws -> FileCompaction {
    let configuration = file.configuration
    return try await file.compactionExecutor.run {
      var compaction = compaction
      try configuration.reportingFileErrors(during: .compact, message: "the new file could not be written") {
        try body(&compaction)
        try compaction.replacement.synchronize()
      }
      return compaction
    }
  }

  /// Closes the file after a running compaction, and after a cheap one if the file is mostly obsolete.
  func close() async throws {
    await stopReading()
    await finishCompaction()
    // A failure only leaves the file larger.
    if !isClosed, file.isCompactionCheap { _ = await startCompaction().result }
    // Another call may have closed the file during the wait.
    try close { try $0.close() }
  }
}
#endif
