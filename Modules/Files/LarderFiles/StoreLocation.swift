import Foundation
public import Larder

/// The location in a URL such as `lmdb:shop#orders`: the path of a file or folder that holds several stores and, after
/// the last `#`, the name of one of them.
///
/// ```swift
/// let location = try StoreLocation(
///   of: StoreURL("notes:work#inbox"), defaultName: "main", whereStoresExist: StoreLocation.exists)
/// ```
public struct StoreLocation: Sendable {
  /// The path of the file or folder.
  public let path: String

  /// The name of the store.
  public let name: String

  /// Splits the location of a URL.
  ///
  /// If the path contains `#`, the name must be appended, as in `lmdb:build#7#default`. A location that could be such a
  /// path is refused, so no other file is opened by mistake.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - defaultName: The name of the store if the location has no `#`.
  ///   - exists: A closure that returns whether a file or folder with stores exists at a path.
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path, because something exists at the whole location, or because the name contains a slash and either there
  ///   are no stores at the path or the part of the location before its last slash exists.
  public init(of url: StoreURL, defaultName: String, whereStoresExist exists: (_ path: String) -> Bool) throws {
    // Searches the bytes, because a number sign followed by a combining mark is a single character.
    let location = url.location
    let separator = location.utf8.lastIndex(of: UInt8(ascii: "#"))
    path = separator.map { String(location[..<$0]) } ?? location
    name = separator.map { String(location[location.utf8.index(after: $0)...]) } ?? defaultName
    guard !path.isEmpty, !name.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "invalid location: expected a path, optionally followed by # and a store name, such as "
          + "\(url.scheme):shop#orders")
    }
    let hasStores = exists(path)
    guard separator == nil || !isPath(location, hasStores: hasStores) else {
      let advice = "write \(url)#\(defaultName) for the path \(location)"
      // With the slash, the path leads to the same folder but is unambiguous in most cases.
      let other = "\(path)/#\(name)"
      let isUnclear = isPath(other, hasStores: hasStores)
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "the last # may be part of a path or begin the name of a store: "
          + (isUnclear ? advice : "\(advice), or \(url.scheme):\(other) for the store \(name) in \(path)"))
    }
  }

  /// Returns whether a location that contains `#` is, as a whole, the path of existing or new stores.
  private func isPath(_ location: String, hasStores: Bool) -> Bool {
    if StoreLocation.exists(location) { return true }
    guard name.utf8.contains(UInt8(ascii: "/")) else { return false }
    // A store created by another program may have such a name.
    return !hasStores || StoreLocation.exists(FilePaths.split(location).directory)
  }

  /// Returns whether anything exists at a path.
  ///
  /// - Parameter path: The path, whose symbolic links are followed.
  public static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
