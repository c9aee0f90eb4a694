import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The folder of a queue: what its files are called, and how it names itself in errors.
struct QueueFolder: StoreFiles, Sendable {
  private static let segmentPrefix = "segment-"
  private static let damagePrefix = "damaged-"
  private static let missingPrefix = "missing-"
  private static let endPrefix = "end-"
  private static let reserveName = "reserve"
  private static let lockName = "lock"

  /// The name of the queue, in errors.
  var name: String
  var path: String
  var durability: Durability
  var access: StoreAccess
  /// Whether a missing queue is created; a reader never creates one.
  var createsIfMissing: Bool
  /// From how many bytes on a new segment is begun.
  var segmentSize: Int64
  var fileSystem: any FileSystem

  var lockPath: String { FilePaths.join(path, QueueFolder.lockName) }

  /// Where the space is that is kept for what takes items out.
  var reservePath: String { FilePaths.join(path, QueueFolder.reserveName) }

  func segmentPath(_ number: UInt32) -> String {
    FilePaths.join(path, QueueFolder.segmentPrefix + QueueFolder.digits(number))
  }

  private static func digits(_ number: UInt32) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
  }

  /// Where an empty file says by its name how far the log has come for certain.
  func endPath(_ end: SegmentEnd) -> String {
    FilePaths.join(path, QueueFolder.endPrefix + QueueFolder.digits(end.number) + "-" + String(end.size, radix: 16))
  }

  /// The end of the log according to the name of a file; `nil` for any other name.
  func end(ofName name: String) -> SegmentEnd? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let number = UInt32(parts[1], radix: 16), let size = Int64(parts[2], radix: 16),
      number < .max >> 1, 0...Int64(UInt32.max) ~= size
    else { return nil }
    let end = SegmentEnd(number: number, size: size)
    return FilePaths.split(endPath(end)).name == name ? end : nil
  }

  /// Where an empty file says that a segment was missing.
  func missingPath(_ number: UInt32) -> String {
    FilePaths.join(path, QueueFolder.missingPrefix + QueueFolder.digits(number))
  }

  /// Whether the name of a file says that something was damaged, or missing, in a segment that may be gone since.
  func isNoteOfDamage(_ name: String) -> Bool {
    name.hasPrefix(QueueFolder.damagePrefix) && ownerOfTemporaryFile(name) == nil
      || name.hasPrefix(QueueFolder.missingPrefix)
  }

  /// Whether the name of a file says that something was damaged in a segment.
  func isNoteOfDamage(_ name: String, inSegment number: UInt32) -> Bool {
    isNoteOfDamage(name) && name.hasPrefix("\(QueueFolder.damagePrefix)\(String(number, radix: 16))-")
  }

  /// Where a damaged place of a segment is kept.
  func damagePath(segment: UInt32, offset: Int64) -> String {
    FilePaths.join(path, "\(QueueFolder.damagePrefix)\(String(segment, radix: 16))-\(String(offset, radix: 16))")
  }

  /// The number of a segment, by the name of its file; `nil` for any other name.
  func segmentNumber(ofName name: String) -> UInt32? {
    guard name.utf8.starts(with: QueueFolder.segmentPrefix.utf8),
      let number = UInt32(name.dropFirst(QueueFolder.segmentPrefix.count), radix: 16),
      FilePaths.split(segmentPath(number)).name == name
    else { return nil }
    return number
  }

  /// Whether a queue without segments may have a file of a name: what a crash at its making leaves, or what was kept
  /// aside before someone moved the segments elsewhere.
  func isOwnName(_ name: String) -> Bool {
    name == QueueFolder.lockName || name == QueueFolder.reserveName || isNoteOfDamage(name) || end(ofName: name) != nil
      || ownerOfTemporaryFile(name) != nil
  }

  /// Removes what replacing a file has left half done.
  func removeStaleTemporaryFiles(among names: [String]) throws(FileError) {
    for owner in Set(names.compactMap(ownerOfTemporaryFile)) {
      try fileSystem.removeStaleTemporaryFiles(of: FilePaths.join(path, owner))
    }
  }

  private func ownerOfTemporaryFile(_ name: String) -> String? {
    guard let mark = name.firstRange(of: POSIXFileSystem.temporaryMark) else { return nil }
    let owner = String(name[..<mark.lowerBound])
    let isOwn = owner.hasPrefix(QueueFolder.segmentPrefix) || owner.hasPrefix(QueueFolder.damagePrefix)
    return isOwn ? owner : nil
  }

  /// Whether an error says nothing about other places in the files: one of the disk is bad, or a segment was removed.
  func isAboutOnePlace(_ error: FileError) -> Bool {
    error.errorNumber == EIO || hasLost(error)
  }

  /// The error of an item that the disk refuses to give.
  func unreadableError(of key: StoreKey, during operation: StoreOperation, _ error: FileError) -> StoreError {
    StoreError(
      .ioFailed, during: operation, store: name, key: key,
      message: operation == .receive
        ? "the item could not be read; it is delivered later" : "the item could not be read",
      underlying: error, isRetryable: true)
  }

  /// Whether a call failed since a segment is not there any more.
  func hasLost(_ error: FileError) -> Bool {
    error.errorNumber == ENOENT
  }
}
