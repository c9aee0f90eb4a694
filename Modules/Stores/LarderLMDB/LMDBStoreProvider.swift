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

/// Opens ``LMDBStore``s for ``StoreRegistry``, for URLs like `lmdb:users` and `lmdb:shop#orders`.
public struct LMDBStoreProvider: StoreProvider {
  /// Makes the provider.
  public init() {}

  /// `lmdb`.
  public var scheme: String { "lmdb" }

  /// What the stores are, in one line.
  public var summary: String { "a named database in an LMDB environment, PATH#NAME, by default the name \"default\"" }

  /// Opens the store that the location names: the path of the environment and, behind the last `#`, the name.
  ///
  /// A path that contains `#` needs the name behind it, as in `lmdb:build#7#default`. A location that may have been meant as
  /// such a path is refused, instead of opening another environment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the path or the name is empty, or if the last `#` may be part of the path:
  ///   there is a file or folder at the whole location, or the name contains a slash and either there is no environment at
  ///   the path or the part of the location before its last slash exists; what opening an ``LMDBStore`` throws; what `codec`
  ///   throws.
  public func open<Value: Sendable>(
    _ url: StoreURL, options: StoreOptions, codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws -> AnyDataStore<Value> {
    let (path, name) = try LMDBStoreProvider.place(of: url)
    return AnyDataStore(
      try await LMDBStore(
        path: path, name: name, durability: options.durability, access: options.access,
        createsIfMissing: options.createsIfMissing, choosing: codec))
  }

  /// Returns the path of the environment that a URL names, alone or with a store in it.
  ///
  /// - Parameter url: The URL, such as `lmdb:shop` or `lmdb:shop#orders`.
  /// - Returns: The path, such as `shop`.
  /// - Throws: ``StoreError``: `invalidArgument` if the path or the name is empty, or if the last `#` may be part of the path.
  public func environmentPath(of url: StoreURL) throws -> String {
    try LMDBStoreProvider.place(of: url).path
  }

  /// The path and the name that a URL stands for.
  private static func place(of url: StoreURL) throws -> (path: String, name: String) {
    // Looked for among the bytes: a number sign and a combining mark behind it are one character.
    let location = url.location
    let mark = location.utf8.lastIndex(of: UInt8(ascii: "#"))
    let path = mark.map { String(location[..<$0]) } ?? location
    let name = mark.map { String(location[location.utf8.index(after: $0)...]) } ?? LMDBStore<Never>.defaultName
    guard !path.isEmpty, !name.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "an LMDB store is a path or, behind it, a number sign and a name, like lmdb:shop#orders")
    }
    guard mark == nil || !isPath(location, insteadOf: path, name) else {
      let advice = "write \(url)#\(LMDBStore<Never>.defaultName) for the path \(location)"
      // The slash leads to the same folder, and tells it from the path in most cases.
      let other = "\(path)/#\(name)"
      let isUnclear = isPath(other, insteadOf: path, name)
      throw StoreError(
        .invalidArgument, during: .open, store: url.description,
        message: "the last # may be part of a path or begin the name of a store: "
          + (isUnclear ? advice : "\(advice), or \(url.scheme):\(other) for the store \(name) in \(path)"))
    }
    return (path, name)
  }

  /// Whether a location with a number sign in it is, as a whole, the path of something, or of something to be made.
  private static func isPath(_ location: String, insteadOf path: String, _ name: String) -> Bool {
    if exists(location) { return true }
    guard name.utf8.contains(UInt8(ascii: "/")) else { return false }
    // An environment of another program may have such names.
    let isEnvironment = exists(FilePaths.join(path, "data.mdb")) || exists(path + "-lock")
    return !isEnvironment || exists(FilePaths.split(location).directory)
  }

  private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
#endif
