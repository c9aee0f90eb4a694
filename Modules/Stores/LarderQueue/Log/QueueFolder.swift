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

  func segmentPath(_ number: UInt32) -> String {
    let digits = String(number, radix: 16)
    return FilePaths.join(
      path, QueueFolder.segmentPrefix + String(repeating: "0", count: max(0, 8 - digits.count)) + digits)
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

  /// The numbers of the segments, in order.
  func segmentNumbers() throws(FileError) -> [UInt32] {
    try fileSystem.contentsOfDirectory(at: path).compactMap(segmentNumber(ofName:)).sorted()
  }

  /// Whether a queue without segments may have a file of a name: what a crash at its making leaves, or what was kept
  /// aside before someone moved the segments elsewhere.
  func isOwnName(_ name: String) -> Bool {
    name == QueueFolder.lockName || name.hasPrefix(QueueFolder.damagePrefix) || ownerOfTemporaryFile(name) != nil
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

  /// Whether a call failed since a segment is not there any more.
  func hasLost(_ error: FileError) -> Bool {
    error.errorNumber == ENOENT
  }
}
