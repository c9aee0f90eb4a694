import Larder
import LarderFiles

/// A cache of open segment files, from which payloads are read.
///
/// Files that leave the cache are closed outside the lock.
final class SegmentFiles: Sendable {
  private static let capacity = 32
  /// The maximum distance, in bytes, between two payloads that are read together.
  private static let gap = 4096
  private static let longestRead = 1 << 20

  private struct Open {
    var files: [UInt32: (file: any OpenStoreFile, lastUse: UInt64)] = [:]
    var useCount: UInt64 = 0
    /// The number of times that files were removed.
    var removalCount: UInt64 = 0

    mutating func use(_ segment: UInt32) -> (any OpenStoreFile)? {
      useCount += 1
      files[segment]?.lastUse = useCount
      return files[segment]?.file
    }

    /// Inserts a file, and returns the one that it displaces.
    mutating func insert(_ file: any OpenStoreFile, forSegment segment: UInt32) -> (any OpenStoreFile)? {
      useCount += 1
      var displaced = files.updateValue((file, useCount), forKey: segment)?.file
      if files.count > SegmentFiles.capacity, let oldest = files.min(by: { $0.value.lastUse < $1.value.lastUse }) {
        displaced = files.removeValue(forKey: oldest.key)?.file
      }
      return displaced
    }
  }

  private let folder: QueueFolder
  private let open = Locked(Open())

  init(folder: QueueFolder) {
    self.folder = folder
  }

  /// Adds a file that is already open.
  func insert(_ file: any OpenStoreFile, forSegment segment: UInt32) {
    _ = open.withLock { $0.insert(file, forSegment: segment) }
  }

  /// Removes the file of a segment that no longer exists.
  ///
  /// A running read keeps it open until the read ends.
  func remove(_ segment: UInt32) {
    _ = open.withLock { open in
      open.removalCount += 1
      return open.files.removeValue(forKey: segment)
    }
  }

  /// Removes all files.
  func removeAll() {
    _ = open.withLock { open in
      defer { open.files = [:] }
      open.removalCount += 1
      return open.files
    }
  }

  private func file(ofSegment segment: UInt32) throws(FileError) -> any OpenStoreFile {
    let (known, removalCount) = open.withLock { ($0.use(segment), $0.removalCount) }
    if let known { return known }
    let file = try folder.fileSystem.open(folder.segmentPath(segment), .read)
    // If the segment was removed in the meantime, keeping its file open would keep its space from being freed.
    _ = open.withLock { open in
      open.removalCount == removalCount ? open.insert(file, forSegment: segment) : nil
    }
    return file
  }

  /// Reads payloads, adjacent ones together.
  ///
  /// - Parameter places: The locations of the payloads.
  /// - Returns: An element for each location: the payload, or `nil` if its checksum does not match.
  /// - Throws: `FileError`.
  func read(_ places: [QueuePlace]) throws(FileError) -> [ArraySlice<UInt8>?] {
    var payloads: [ArraySlice<UInt8>?] = Array(repeating: nil, count: places.count)
    let order = places.indices.sorted {
      (places[$0].segment, places[$0].offset) < (places[$1].segment, places[$1].offset)
    }
    var index = 0
    while index < order.count {
      let first = places[order[index]]
      var next = index
      var end = Int(first.offset)
      while next < order.count {
        let place = places[order[next]]
        let placeEnd = Int(place.offset) + 4 + Int(place.length)
        guard place.segment == first.segment, Int(place.offset) <= end + SegmentFiles.gap,
          next == index || placeEnd - Int(first.offset) <= SegmentFiles.longestRead
        else { break }
        end = max(end, placeEnd)
        next += 1
      }
      let bytes = try file(ofSegment: first.segment).readAll(from: Int64(first.offset), upTo: Int64(end))
      for slot in order[index..<next] {
        let place = places[slot]
        let start = Int(place.offset - first.offset)
        guard start + 4 + Int(place.length) <= bytes.count else { continue }
        var reader = ByteReader(bytes[start...])
        guard let checksum = reader.read(UInt32.self), let payload = reader.read(count: Int(place.length)),
          CRC32C.checksum(of: payload) == checksum
        else { continue }
        payloads[slot] = payload
      }
      index = next
    }
    return payloads
  }

  /// Reads payloads, and reports errors for each location separately.
  ///
  /// - Parameters:
  ///   - places: The locations of the payloads.
  ///   - evenIfLost: A Boolean value that indicates whether a missing segment is reported like an unreadable location.
  ///     Defaults to `false`.
  /// - Returns: An element for each location: the payload, `nil` if its checksum does not match, or the error of
  ///   reading it.
  /// - Throws: `FileError` if reading fails for a reason that concerns no single location.
  func readEach(
    _ places: [QueuePlace], evenIfLost: Bool = false
  ) throws(FileError) -> [Result<ArraySlice<UInt8>?, FileError>] {
    do throws(FileError) {
      return try read(places).map { .success($0) }
    } catch {
      guard error.isDiskFailure || evenIfLost && error.isMissing else { throw error }
    }
    return try places.map { place throws(FileError) in
      do throws(FileError) {
        return .success(try read([place])[0])
      } catch {
        guard error.isDiskFailure || evenIfLost && error.isMissing else { throw error }
        return .failure(error)
      }
    }
  }

  /// Reads the checksum and the bytes of a payload without comparing them.
  ///
  /// - Throws: `FileError`, with EIO if the file is too short.
  func readStored(_ place: QueuePlace) throws(FileError) -> (checksum: UInt32, payload: ArraySlice<UInt8>) {
    let start = Int64(place.offset)
    let bytes = try file(ofSegment: place.segment).readAll(from: start, upTo: start + 4 + Int64(place.length))
    var reader = ByteReader(bytes[...])
    guard let checksum = reader.read(UInt32.self), let payload = reader.read(count: Int(place.length)) else {
      throw .unreadable(folder.segmentPath(place.segment))
    }
    return (checksum, payload)
  }
}

/// An open segment file with its header.
struct SegmentFile: Sendable {
  let header: SegmentHeader
  /// The length of the header, in bytes.
  let headerLength: Int64
  let file: any OpenStoreFile
  /// The attributes of the file when it was opened.
  let attributes: FileAttributes
  let path: String

  /// The size of the file when it was opened, in bytes.
  var size: Int64 { attributes.size }

  /// Opens a segment and checks its header.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  init(_ number: UInt32, in folder: QueueFolder, _ mode: FileOpenMode, during operation: StoreOperation) throws {
    path = folder.segmentPath(number)
    file = try folder.fileSystem.open(path, mode)
    attributes = try file.attributes()
    try folder.checkKind(attributes, of: path, isWritten: mode != .read)
    let start = try file.readAll(from: 0, upTo: min(attributes.size, Int64(SegmentHeader.maximumLength)))
    do {
      let (header, length) = try SegmentHeader.read(start)
      (self.header, headerLength) = (header, Int64(length))
    } catch .foreign {
      throw folder.error(
        .unrecognizedFormat, during: operation, "\(path) is not a file of a queue; it was left unchanged")
    } catch .otherVersion(let version) {
      throw folder.error(
        .versionMismatch, during: operation,
        """
        \(path) is in version \(version) of the format, but this program reads version \
        \(SegmentHeader.version); use the program that wrote it
        """
      )
    } catch .damaged {
      throw folder.error(
        .corrupted, during: operation,
        "the header of \(path) is damaged; the file was left unchanged. Move it elsewhere to continue without its items"
      )
    }
    guard header.number == number else {
      throw folder.error(
        .corrupted, during: operation, "\(path) is segment \(header.number) under another name; it was left unchanged")
    }
  }

  /// Returns a scanner of the frames before an offset.
  func scanner(upTo end: Int64) -> SegmentScanner {
    let file = file
    return SegmentScanner(
      headerLength..<max(headerLength, end), salt: header.salt
    ) { range throws(FileError) in try file.readable(from: range.lowerBound, upTo: range.upperBound).bytes }
  }
}
