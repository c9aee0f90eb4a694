import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Reading files of text whole.
extension OpenFile {
  /// Reads the text of a file, up to and including the piece with its first NUL: JSON text has none.
  ///
  /// So a file that is long only because it is sparse takes no memory.
  ///
  /// - Parameter size: The size of the file, which the caller has bounded.
  /// - Throws: ``FileError``.
  func readText(size: Int64) throws(FileError) -> [UInt8] {
    let head = try readAll(from: 0, upTo: min(size, JSONFileText.pieceSize))
    guard size > JSONFileText.pieceSize, !head.contains(0) else { return head }
    return try JSONFileText.bytes(size: size) { (place, buffer) throws(FileError) in
      let count = try read(into: buffer, at: place)
      return (count, buffer[..<count].contains(0))
    }
  }

  /// Reads the text of a file of which some parts cannot be read: NUL stands for these.
  ///
  /// It ends where the file has nothing but NUL for 16 MiB, as a sparse one has.
  ///
  /// - Parameter size: The size of the file, which the caller has bounded.
  /// - Throws: ``FileError`` for any other failure than that the disk cannot read.
  func readDamagedText(size: Int64) throws(FileError) -> [UInt8] {
    guard size > 0 else { return [] }
    var emptyPages = 0
    return try JSONFileText.bytes(size: size) { (place, buffer) throws(FileError) in
      // Page by page, since one that is unreadable makes a longer read fail.
      let page = UnsafeMutableRawBufferPointer(
        rebasing: buffer.prefix(JSONFileText.pageSize - Int(place % Int64(JSONFileText.pageSize))))
      do throws(FileError) {
        let count = try read(into: page, at: place)
        emptyPages = page[..<count].contains { $0 != 0 } ? 0 : emptyPages + 1
        return (count, emptyPages == JSONFileText.mostEmptyPages)
      } catch {
        guard error.errorNumber == EIO else { throw error }
        page.initializeMemory(as: UInt8.self, repeating: 0)
        return (page.count, false)
      }
    }
  }
}

private enum JSONFileText {
  static let pieceSize: Int64 = 1 << 20
  static let pageSize = 4 << 10
  static let mostEmptyPages = 4 << 10

  /// The bytes that a closure reads piece by piece, until it reads nothing or says that it is done.
  ///
  /// - Parameter read: Gets the place in the file and the room for the next bytes, and returns how many there are.
  static func bytes(
    size: Int64, _ read: (Int64, UnsafeMutableRawBufferPointer) throws(FileError) -> (count: Int, isDone: Bool)
  ) throws(FileError) -> [UInt8] {
    var failure: FileError?
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
      while count < buffer.count {
        let end = min(count + Int(pieceSize), buffer.count)
        let room = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[count..<end]))
        do throws(FileError) {
          let piece = try read(Int64(count), room)
          count += piece.count
          if piece.count == 0 || piece.isDone { return }
        } catch {
          guard error.errorNumber != EINTR else { continue }
          failure = error
          return
        }
      }
    }
    if let failure { throw failure }
    return bytes
  }
}
