public import Larder

/// A file that one object of the process has open, for all of its users.
public protocol SharedFile: AnyObject, Sendable {
  /// The identity of the file.
  ///
  /// It stays the same if the file is renamed.
  var identity: FileAttributes.Identity { get }

  /// The access to the file.
  var access: StoreAccess { get }

  /// The durability of a write when it returns.
  var durability: Durability.File { get }
}

/// The files of one kind of store that the process has open, by their identities, with the number of their users.
///
/// Use it if several stores share a file, or if a lock of the operating system belongs to the process, so a second
/// object with the file open would lose it.
///
/// Files are opened by one thread at a time, which calls ``take(_:access:durability:store:)`` and, if the file is not
/// open, opens it and calls ``insert(_:)``.
public final class SharedFiles<File: SharedFile>: Sendable {
  private let entries = Locked<[FileAttributes.Identity: (file: File, userCount: Int)]>([:])

  /// Creates an empty list.
  public init() {}

  /// Returns a file that is open, and counts one more user.
  ///
  /// - Parameters:
  ///   - identity: The identity of the file.
  ///   - access: The access that the user asks for.
  ///   - durability: The durability that the user asks for.
  ///   - store: The name of the store in errors.
  /// - Returns: The file, or `nil` if it is not open.
  /// - Throws: `StoreError` with `locked` if the file is open with another access or durability.
  public func take(
    _ identity: FileAttributes.Identity, access: StoreAccess, durability: Durability.File, store: String
  ) throws(StoreError) -> File? {
    try entries.withLock { entries throws(StoreError) in
      guard let file = entries[identity]?.file else { return nil }
      guard file.access == access else {
        throw StoreError(
          .locked, during: .open, store: store,
          message: "this process has the file open with a different access, \(file.access)")
      }
      guard file.durability == durability || access != .readWrite else {
        throw StoreError(
          .locked, during: .open, store: store,
          message: "this process has the file open with a different durability, \(file.durability)")
      }
      entries[identity]?.userCount += 1
      return file
    }
  }

  /// Notes that a file was opened, for its first user.
  ///
  /// - Parameter file: The file.
  public func insert(_ file: File) {
    entries.withLock { $0[file.identity] = (file, 1) }
  }

  /// Returns whether a file that satisfies a condition is open.
  ///
  /// - Parameter condition: The condition. It is called under a lock.
  public func contains(where condition: (File) -> Bool) -> Bool {
    entries.withLock { $0.values.contains { condition($0.file) } }
  }

  /// Counts one user less.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - close: What is done after the last user, before the file can be opened again.
  /// - Returns: A Boolean value that indicates whether this was the last user.
  @discardableResult public func release(_ file: File, closing close: (File) -> Void = { _ in }) -> Bool {
    entries.withLock { entries in
      guard let entry = entries[file.identity], entry.file === file else { return false }
      entries[file.identity] = entry.userCount > 1 ? (file, entry.userCount - 1) : nil
      if entry.userCount == 1 { close(file) }
      return entry.userCount == 1
    }
  }
}
