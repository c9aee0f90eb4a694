#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The end of a file to which records are appended: knows what is written, what is durable, and whether it can go on.
///
/// What a record looks like, and so where the good ones end, is the caller's matter. The log promises that a failed
/// append leaves nothing that could be taken for a record, and that nothing more is written once the state of the file
/// is unknown.
public struct AppendLog: Sendable {
  private let file: any OpenFile

  /// Where the next record goes: behind all good records.
  public private(set) var size: Int64

  /// How many of the bytes are known to be durable.
  public private(set) var durableSize: Int64

  /// What made the log unusable; `nil` as long as it is in order.
  ///
  /// After a failed synchronization the system may have dropped what was written, and report success the next time. So
  /// the log then refuses everything; open the file afresh, or write all of it to a new one.
  public private(set) var failure: FileError?

  /// Goes on behind the good records of a file, and removes for good what stands behind them.
  ///
  /// - Parameters:
  ///   - file: The file, open for writing.
  ///   - size: Where its good records end. All before it must be durable or is made so here.
  /// - Throws: ``FileError``, with EINVAL where the file is not that long.
  public init(continuing file: any OpenFile, at size: Int64) throws(FileError) {
    let actualSize = try file.attributes().size
    guard size <= actualSize else { throw FileError(.truncate, path: "", errorNumber: EINVAL) }
    if size < actualSize { try file.truncate(to: size) }
    // Before anything is appended: otherwise the rest of a torn record could reappear behind a new one.
    try file.synchronizeThroughInterruptions()
    self.file = file
    self.size = size
    durableSize = size
  }

  /// Appends a record, so that it survives the death of the process.
  ///
  /// - Parameter record: The bytes of the record.
  /// - Throws: ``FileError``. Where ``failure`` is still `nil` then, nothing was changed and the log goes on.
  public mutating func append(_ record: [UInt8]) throws(FileError) {
    try checkUsable()
    var appendFailure: FileError?
    record.withUnsafeBytes { bytes in
      do throws(FileError) { try file.writeAll(bytes, at: size) } catch { appendFailure = error }
    }
    guard let appendFailure else {
      size += Int64(record.count)
      return
    }
    do throws(FileError) {
      try file.truncate(to: size)
      // What failed may have been written all the same, and stand there again after power loss.
      try file.synchronizeThroughInterruptions()
      durableSize = size
    } catch {
      failure = error
    }
    throw appendFailure
  }

  /// Makes every record so far durable against power loss.
  ///
  /// - Throws: ``FileError``; the log is unusable then.
  public mutating func synchronize() throws(FileError) {
    try checkUsable()
    guard durableSize < size else { return }
    do throws(FileError) {
      try file.synchronizeThroughInterruptions()
    } catch {
      failure = error
      throw error
    }
    durableSize = size
  }

  /// Writes bytes behind the records without making them one: the next append overwrites them, and they may be lost.
  ///
  /// The bytes must be such that no reader takes them, or a part of them, for a record, and shorter than every record.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``FileError``. The records are untouched, and the log goes on.
  public func writeBehind(_ bytes: [UInt8]) throws(FileError) {
    try checkUsable()
    var failure: FileError?
    bytes.withUnsafeBytes { bytes in
      do throws(FileError) { try file.writeAll(bytes, at: size) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Closes the file.
  ///
  /// - Throws: ``FileError``.
  public func close() throws(FileError) {
    try file.close()
  }

  private func checkUsable() throws(FileError) {
    if let failure { throw failure }
  }
}
