import Larder

/// Statistics, verification, compaction and backup of a ``JSONFileStore``.
struct JSONFileMaintenance<Value: Sendable>: StoreMaintenance {
  let writer: JSONFileWriter
  let coder: JSONValueCoder<Value>

  func statistics() async throws -> StoreStatistics {
    try await writer.statistics()
  }

  func verify() async throws -> VerificationReport {
    let coder = coder
    return try await writer.verify { text in
      do {
        _ = try coder.decode(text)
        return nil
      } catch {
        return "the value cannot be decoded"
      }
    }
  }

  func compact() async throws {
    try await writer.compact()
  }

  func backup(to path: String, compacting: Bool) async throws {
    // A document has no free space.
    try await writer.backup(to: path)
  }
}
