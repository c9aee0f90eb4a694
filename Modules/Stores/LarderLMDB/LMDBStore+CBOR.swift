#if LMDB
public import Larder
import LarderCBOR

extension LMDBStore where Value: Codable {
  /// Opens a store of `Codable` values in an environment, with ``CBORCodec``.
  ///
  /// - Parameters:
  ///   - environment: Where the store is.
  ///   - name: Its name; `default` unless given.
  ///   - createsIfMissing: Whether a missing store is created; `true` unless said.
  /// - Throws: As ``init(in:name:codec:createsIfMissing:)``.
  public convenience init(
    in environment: LMDBEnvironment, name: String = LMDBStore.defaultName, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(in: environment, name: name, codec: CBORCodec(), createsIfMissing: createsIfMissing)
  }

  /// Opens a store of `Codable` values, and the environment that it is in, with ``CBORCodec``.
  ///
  /// - Parameters:
  ///   - path: The environment: a folder or a data file.
  ///   - name: The name of the store; `default` unless given.
  ///   - durability: What happens before a write returns; ``Durability/synced`` unless said.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  ///   - createsIfMissing: Whether a missing environment or store is created; `true` unless said.
  /// - Throws: As ``init(path:name:codec:durability:access:createsIfMissing:)``.
  public convenience init(
    path: String, name: String = LMDBStore.defaultName, durability: Durability = .synced,
    access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      path: path, name: name, codec: CBORCodec(), durability: durability, access: access,
      createsIfMissing: createsIfMissing)
  }
}
#endif
