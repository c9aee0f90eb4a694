import Larder
import LarderFiles
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The files from which payloads are read, kept open as long as they are not too many.
final class SegmentFiles: Sendable {
  private static let capacity = 32
  /// How far apart two payloads may be that are read in one go.
  private static let gap = 4096
  private static let longestRead = 1 << 20

  private struct Open {
    var files: [UInt32: (file: any OpenFile, lastUse: UInt64)] = [:]
    var useCount: UInt64 = 0

    mutating func use(_ segment: UInt32) -> (any OpenFile)? {
      useCount += 1
      files[segment]?.lastUse = useCount
      return files[segment]?.file
    }

    /// Gives the file that must go for it.
    mutating func insert(_ file: any OpenFile, forSegment segment: UInt32) -> (any OpenFile)? {
      useCount += 1
      var displaced = files.updateValue((file, useCount), forKey: segment)?.file
      if files.count > SegmentFiles.capacity, let oldest = files.min(by: { $0.value.lastUse < $1.value.lastUse }) {
        displaced = files.removeValue(forKey: oldest.key)?.file
      }
      return displaced
    }
  }

  private let folder: QueueFolder
  private let open = Mutex(Open())

  init(folder: QueueFolder) {
    self.folder = folder
  }

  /// Takes over a file that is open already.
  func insert(_ file: any OpenFile, forSegment segment: UInt32) {
    let displaced = open.withLock { $0.insert(file, forSegment: segment) }
    withExtendedLifetime(displaced) {}
  }

  /// Forgets the file of a segment; a read that is running keeps it open until it ends.
  func remove(_ segment: UInt32) {
    let displaced = open.withLock { $0.files.removeValue(forKey: segment) }
    withExtendedLifetime(displaced) {}
  }

  /// Lets go of every file.
  func removeAll() {
    let displaced = open.withLock { open in
      defer { open.files = [:] }
      return open.files
    }
    withExtendedLifetime(displaced) {}
  }

  private func file(ofSegment segment: UInt32) throws(FileError) -> any OpenFile {
    if let file = open.withLock({ $0.use(segment) }) { return file }
    let file = try folder.fileSystem.open(folder.segmentPath(segment), .read)
    insert(file, forSegment: segment)
    return file
  }

  /// Reads payloads; neighbours are read in one go.
  ///
  /// - Parameter places: Where they are.
  /// - Returns: A slot for each place: the payload, or `nil` if what is there does not have its checksum.
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

  /// Reads payloads, those aside that the disk refuses to give.
  ///
  /// - Parameters:
  ///   - places: Where they are.
  ///   - evenIfLost: Whether a segment that is gone is taken like one that cannot be read; defaults to `false`.
  /// - Returns: A slot for each place: the payload, `nil` if what is there does not have its checksum, or why it cannot
  ///   be read.
  /// - Throws: `FileError` if the reason has nothing to do with one place.
  func readEach(
    _ places: [QueuePlace], evenIfLost: Bool = false
  ) throws(FileError) -> [Result<ArraySlice<UInt8>?, FileError>] {
    do throws(FileError) {
      return try read(places).map { .success($0) }
    } catch {
      guard folder.isAboutOnePlace(error), evenIfLost || !folder.hasLost(error) else { throw error }
    }
    var payloads: [Result<ArraySlice<UInt8>?, FileError>] = []
    for place in places {
      do throws(FileError) {
        payloads += try read([place]).map { .success($0) }
      } catch {
        guard folder.isAboutOnePlace(error), evenIfLost || !folder.hasLost(error) else { throw error }
        payloads.append(.failure(error))
      }
    }
    return payloads
  }

  /// Reads the checksum and the bytes of a payload, whether or not they fit.
  ///
  /// - Throws: `FileError`, with EIO where the file ends before.
  func readStored(_ place: QueuePlace) throws(FileError) -> (checksum: UInt32, payload: ArraySlice<UInt8>) {
    let start = Int64(place.offset)
    let bytes = try file(ofSegment: place.segment).readAll(from: start, upTo: start + 4 + Int64(place.length))
    var reader = ByteReader(bytes[...])
    guard let checksum = reader.read(UInt32.self), let payload = reader.read(count: Int(place.length)) else {
      throw FileError(.read, path: folder.segmentPath(place.segment), errorNumber: EIO)
    }
    return (checksum, payload)
  }
}
