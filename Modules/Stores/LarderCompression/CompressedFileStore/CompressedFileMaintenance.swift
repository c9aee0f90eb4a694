#if Compression
import Larder

/// Statistics, verification, compaction and backup of a ``CompressedFileStore``.
struct CompressedFileMaintenance<Value: Sendable>: StoreMaintenance {
  let writer: CompressedFileWriter
  let coder: JSONValueCoder<Value>

  func statistics() async throws -> StoreStatistics {
    try await writer.statistics()
  }

  func verify() async throws -> VerificationReport {
    let coder = coder
    return try await writer.verify { key, line in
      do {
        _ = try coder.decode(try StoreLine.value(line, ofKey: key))
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
    try await writer.backup(to: path, compacting: compacting)
  }
}
#endif
