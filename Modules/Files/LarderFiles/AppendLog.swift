/// The writable end of a file that records are appended to.
///
/// The log tracks which records are written, which are durable, and whether it can still be used. The caller defines
/// the format of a record, and therefore where the valid records end. The log promises that a failed append leaves
/// nothing that could be mistaken for a record, and that nothing more is written once the state of the file is unknown.
///
/// ```swift
/// var log = try AppendLog(continuing: file, at: endOfLastRecord)
/// try log.append(record)
/// try log.synchronize()
/// ```
public struct AppendLog: Sendable {
  private let file: any OpenStoreFile

  /// The offset of the next record: the end of the valid records.
  public private(set) var size: Int64

  /// The number of bytes known to be durable.
  public private(set) var durableSize: Int64

  /// The error that made the log unusable, or `nil` while the log is usable.
  ///
  /// After a failed synchronization, the system may have dropped written data and report success the next time. The log
  /// then refuses all operations. Open the file again, or write all of its content to a new file.
  public private(set) var failure: FileError?

  /// Continues a file after its valid records, and permanently removes any bytes after them.
  ///
  /// - Parameters:
  ///   - file: The file, open for writing.
  ///   - size: The end of the valid records, in bytes. The initializer makes them durable if they are not yet.
  /// - Throws: ``FileError``, with EINVAL if the file is shorter than `size`.
  public init(continuing file: any OpenStoreFile, at size: Int64) throws(FileError) {
    let actualSize = try file.attributes().size
    guard size <= actualSize else { throw .tooShort }
    if size < actualSize { try file.truncate(to: size) }
    // Before anything is appended. Otherwise the rest of a torn record could reappear after a new one.
    try file.synchronizeThroughInterruptions()
    self.file = file
    self.size = size
    durableSize = size
  }

  /// Appends a record, so it survives a crash of the process.
  ///
  /// - Parameter record: The bytes of the record.
  /// - Throws: ``FileError``. If ``failure`` is `nil` afterward, nothing was changed and the log is still usable.
  public mutating func append(_ record: [UInt8]) throws(FileError) {
    if let failure { throw failure }
    do throws(FileError) {
      try file.writeAll(record, at: size)
    } catch {
      removeTail()
      throw error
    }
    size += Int64(record.count)
  }

  /// Removes the bytes of a failed append.
  private mutating func removeTail() {
    do throws(FileError) {
      try file.truncate(to: size)
      // The failed bytes may have been written nevertheless, and could reappear after power loss.
      try file.synchronizeThroughInterruptions()
      durableSize = size
    } catch {
      failure = error
    }
  }

  /// Flushes all records to disk, so they survive power loss.
  ///
  /// - Throws: ``FileError``. The log is unusable afterward.
  public mutating func synchronize() throws(FileError) {
    if let failure { throw failure }
    guard durableSize < size else { return }
    do throws(FileError) {
      try file.synchronizeThroughInterruptions()
    } catch {
      failure = error
      throw error
    }
    durableSize = size
  }

  /// Writes bytes after the records without making them a record.
  ///
  /// The next append overwrites the bytes, and they may be lost. They must be shorter than every record, and no reader
  /// may mistake them, or a part of them, for a record.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``FileError``. The records are unchanged, and the log is still usable.
  public func writeBehind(_ bytes: [UInt8]) throws(FileError) {
    if let failure { throw failure }
    try file.writeAll(bytes, at: size)
  }

  /// Closes the file.
  ///
  /// - Throws: ``FileError``.
  public func close() throws(FileError) {
    try file.close()
  }
}
