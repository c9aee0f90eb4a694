import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A reader of folders that keeps every byte of a name, because names need not be UTF-8.
enum FolderReader {
  /// An item in a folder.
  struct Item {
    /// The bytes of the name.
    var name: StoreKey

    /// The status of the item, or the error of reading it.
    var record: Result<FileRecord, SystemError>
  }

  /// Reads all names in a folder, in no particular order, without "." and "..".
  ///
  /// Names that are removed in the meantime are omitted.
  ///
  /// - Parameters:
  ///   - path: The path of the folder.
  ///   - followsLink: A Boolean value that indicates whether the path may be a symbolic link to a folder.
  /// - Throws: ``SystemError`` if the folder cannot be read completely.
  static func items(ofFolder path: [UInt8], followsLink: Bool) throws(SystemError) -> [Item] {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (followsLink ? 0 : O_NOFOLLOW)
    let descriptor = withNullTerminated(path) { open($0, flags) }
    guard descriptor >= 0 else { throw .current() }
    guard let stream = fdopendir(descriptor) else {
      let error = SystemError.current()
      close(descriptor)
      throw error
    }
    defer { closedir(stream) }

    var items: [Item] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw .current() }
        return items
      }
      // The name is read in place. The struct may be shorter than its declaration, so that a copy would overrun it.
      guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { continue }
      let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      if bytes.elementsEqual(".".utf8) || bytes.elementsEqual("..".utf8) { continue }

      var status = stat()
      if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
        items.append(Item(name: StoreKey(copying: bytes), record: .success(FileRecord(status))))
      } else {
        let error = SystemError.current()
        guard !error.meansGone else { continue }
        items.append(Item(name: StoreKey(copying: bytes), record: .failure(error)))
      }
    }
  }

  private static func withNullTerminated<Result>(_ path: [UInt8], _ body: (UnsafePointer<CChar>) -> Result) -> Result {
    (path + [0]).withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        // An array that ends in a NUL byte always has a base address.
        characters.baseAddress.map(body) ?? body("")
      }
    }
  }
}
