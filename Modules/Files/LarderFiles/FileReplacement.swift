/// A file that is written beside another, to take its name once all of it is durable.
///
/// ``FileSystem/replaceFile(at:like:_:)`` does all of it in one call; this is for callers that have to do something
/// else meanwhile, or goes on with the new file.
package struct FileReplacement: Sendable {
  private let path: String
  private let temporaryPath: String
  /// The new file.
  package let file: any OpenFile

  private let fileSystem: any FileSystem

  /// Writes the content.
  package var writer: BufferedFileWriter

  /// Creates the temporary file.
  ///
  /// - Parameters:
  ///   - path: The file to replace; it need not exist. A canonical path: a symbolic link would be replaced by the file.
  ///   - existing: The file whose permissions the new one gets, and whose owner if the process may give it away; `nil` for
  ///     0600 and the owner of the process.
  ///   - fileSystem: Where it is.
  /// - Throws: ``FileError``.
  package init(of path: String, like existing: FileAttributes?, in fileSystem: some FileSystem) throws(FileError) {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    let padding = String(repeating: "0", count: type(of: fileSystem).randomDigitCount - digits.count)
    self.path = path
    temporaryPath = path + type(of: fileSystem).temporaryMark + padding + digits
    self.fileSystem = fileSystem
    file = try fileSystem.open(temporaryPath, .createNew)
    writer = BufferedFileWriter(file: file)
    do {
      if let existing { try file.adopt(existing) }
    } catch {
      abandon()
      throw error
    }
  }

  /// Makes durable what was written so far, so that ``commit(closing:)`` has to wait for the rest only.
  ///
  /// - Throws: ``FileError``; the file must not be committed then.
  package mutating func synchronize() throws(FileError) {
    try writer.flush()
    try file.synchronizeThroughInterruptions()
  }

  /// Sets the modification time of the new file, as the last thing before ``commit(closing:)``.
  ///
  /// - Parameter time: The time, in nanoseconds since 1 January 1970, UTC.
  /// - Throws: ``FileError``.
  package mutating func setModificationTime(_ time: Int64) throws(FileError) {
    try writer.flush()
    try file.setModificationTime(time)
  }

  /// Makes the new file durable and gives it the name of the old one, durably.
  ///
  /// - Parameter close: Gets the new file, once it is durable and before it takes the name; it may close it.
  /// - Returns: The new file.
  /// - Throws: ``FileError``. Where its operation is ``FileError/Operation/rename`` or
  ///   ``FileError/Operation/synchronizeDirectory`` the new file may be in place, or come into place after power loss;
  ///   otherwise the old one stands as it was.
  @discardableResult
  package mutating func commit(
    closing close: (any OpenFile) throws(FileError) -> Void = { _ in }
  ) throws(FileError) -> any OpenFile {
    do throws(FileError) {
      try synchronize()
      try close(file)
      try fileSystem.rename(temporaryPath, to: path)
    } catch {
      abandon()
      throw error
    }
    try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
    return file
  }

  /// Removes the temporary file.
  package func abandon() {
    // Something else went wrong before, and the caller must hear of that; what cannot be removed now is swept later.
    try? fileSystem.removeFile(at: temporaryPath)
  }

  /// Returns what the new file is so far.
  ///
  /// - Throws: ``FileError``.
  package func attributes() throws(FileError) -> FileAttributes {
    try file.attributes()
  }

  /// Tells the new file from every other.
  ///
  /// - Throws: ``FileError``.
  package func identity() throws(FileError) -> FileAttributes.Identity {
    try attributes().identity
  }
}
