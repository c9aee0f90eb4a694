#if LMDB
public import Larder
internal import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A provider that opens ``LMDBStore``s for `StoreRegistry`, for URLs such as `lmdb:users` and `lmdb:shop#orders`.
public struct LMDBStoreProvider: StoreProvider {
  /// Creates the provider.
  public init() {}

  /// The scheme `lmdb`.
  public var scheme: String { "lmdb" }

  /// A one-line description of the stores.
  public var summary: String { "a named database in an LMDB environment, PATH#NAME, by default the name \"default\"" }

  /// The default codec of new stores, `cbor`.
  public var codecName: String { UntypedDatabase.defaultCodecName }

  /// Opens the store that a URL names: the path of the environment and, after the last `#`, the name of the store.
  ///
  /// If the path contains `#`, you must append the name, as in `lmdb:build#7#default`. A location that could be such a
  /// path is refused, so that no other environment is opened by mistake.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path, because a file or folder exists at the whole location, or because the name contains a slash and either
  ///   there is no environment at the path or the part of the location before its last slash exists; the errors of
  ///   opening an ``LMDBStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    let (path, name) = try LMDBStoreProvider.components(of: url)
    let environment = try await LMDBEnvironment(
      path: path, durability: options.durability, access: options.access, createsIfMissing: options.createsIfMissing)
    return try await UntypedDatabase(
      in: environment, isOwned: true, name: name, createsIfMissing: options.createsIfMissing,
      newCodecName: newCodecName)
  }

  /// Returns the path of the environment that a URL names, alone or with a store in it.
  ///
  /// - Parameter url: The URL, such as `lmdb:shop` or `lmdb:shop#orders`.
  /// - Returns: The path, such as `shop`.
  /// - Throws: `StoreError`: `invalidArgument` if the path or the name is empty, or if the last `#` could be part of
  ///   the path.
  public func environmentPath(of url: StoreURL) throws -> String {
    try LMDBStoreProvider.components(of: url).path
  }

  /// Returns the path and the store name in a URL.
  private static func components(of url: StoreURL) throws -> (path: String, name: String) {
    // Searches the bytes, because a number sign followed by a combining mark is a single character.
    let location = url.location
    let separator = location.utf8.lastIndex(of: UInt8(ascii: "#"))
    let path = separator.map { String(location[..<$0]) } ?? location
    let name = separator.map { String(location[location.utf8.index(after: $0)...]) } ?? LMDBStore<Never>.defaultName
    guard !path.isEmpty, !name.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message:
          "invalid location: expected a path, optionally followed by # and a store name, such as lmdb:shop#orders")
    }
    guard separator == nil || !isPath(location, insteadOf: path, name) else {
      let advice = "write \(url)#\(LMDBStore<Never>.defaultName) for the path \(location)"
      // With the slash, the path leads to the same folder but is unambiguous in most cases.
      let other = "\(path)/#\(name)"
      let isUnclear = isPath(other, insteadOf: path, name)
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "the last # may be part of a path or begin the name of a store: "
          + (isUnclear ? advice : "\(advice), or \(url.scheme):\(other) for the store \(name) in \(path)"))
    }
    return (path, name)
  }

  /// Returns whether a location that contains `#` is, as a whole, the path of an existing or new environment.
  private static func isPath(_ location: String, insteadOf path: String, _ name: String) -> Bool {
    if exists(location) { return true }
    guard name.utf8.contains(UInt8(ascii: "/")) else { return false }
    // An environment created by another program may have such names.
    let isEnvironment = exists(FilePaths.join(path, "data.mdb")) || exists(path + "-lock")
    return !isEnvironment || exists(FilePaths.split(location).directory)
  }

  private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
#endif
