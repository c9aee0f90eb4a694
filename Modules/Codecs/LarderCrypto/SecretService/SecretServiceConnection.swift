#if Crypto
import Foundation

/// A connection to the Secret Service for one operation on one item.
///
/// Its calls block, the longest of them while the keyring asks the user for a password.
final class SecretServiceConnection {
  /// The session bus, `G_BUS_TYPE_SESSION`.
  private static let sessionBus: Int32 = 2
  /// The flag `SECRET_SERVICE_OPEN_SESSION`.
  private static let openSession: Int32 = 1 << 1
  /// The flags `SECRET_SEARCH_ALL`, `SECRET_SEARCH_UNLOCK` and `SECRET_SEARCH_LOAD_SECRETS`.
  private static let searchFlags: Int32 = 1 << 1 | 1 << 2 | 1 << 3

  private let library: LibSecret
  private let service: LibSecret.Object
  private let attributes: LibSecret.Object

  /// The item with the attributes, after ``load()`` has found it.
  private var item: LibSecret.Object?

  /// Opens a connection.
  ///
  /// - Parameters:
  ///   - attributes: The names and values by which the item is found.
  ///   - library: The library, or `nil` if it is not installed. Defaults to the installed one.
  /// - Throws: `KeyRingError`: `unsupported` if libsecret is not installed; `unavailable` if there is no session bus or
  ///   no Secret Service.
  init(attributes texts: [(String, String)], library: LibSecret? = .shared) throws(KeyRingError) {
    guard let library else {
      throw KeyRingError(
        .unsupported,
        message: "the library libsecret-1.so.0 cannot be loaded; on Debian and Ubuntu, install libsecret-1-0")
    }
    self.library = library
    let bus = try Self.calling(library, "there is no session bus") { library.busGet(Self.sessionBus, nil, $0) }
    // By default, GLib ends the process when the bus closes the connection.
    library.setExitOnClose(bus, 0)
    // The service has its own reference to the bus.
    defer { library.release(bus) }
    service = try Self.calling(library, "there is no Secret Service on the session bus; start a keyring") {
      library.openService(library.serviceType(), nil, Self.openSession, nil, $0)
    }
    guard let table = library.table(texts) else {
      library.release(service)
      throw KeyRingError(.ioFailed, message: "libsecret could not create a table of attributes")
    }
    attributes = table
  }

  deinit {
    if let item { library.release(item) }
    library.releaseTable(attributes)
    library.release(service)
  }

  /// Finds the item and returns its secret.
  ///
  /// - Returns: The secret, or `nil` if there is no such item and no keyring is locked.
  /// - Throws: `KeyRingError`: `unavailable` if the item or, without an item, any keyring is locked; `corrupted` if
  ///   there are several items.
  func load() throws(KeyRingError) -> [UInt8]? {
    var found = try search()
    if found.isEmpty {
      // A keyring that was locked during a search may be unlocked afterward, so there is a search between two looks.
      try refuseLockedCollections()
      found = try search()
    }
    defer { found.dropFirst().forEach { library.release($0) } }
    guard let first = found.first else {
      try refuseLockedCollections()
      return nil
    }
    if let item { library.release(item) }
    item = first
    // A locked item is not asked for its secret, which would be missing as if it had none.
    guard found.allSatisfy({ library.isItemLocked($0) == 0 }) else {
      throw KeyRingError(.unavailable, message: "the keyring is locked; unlock it and try again")
    }
    guard found.count == 1 else {
      throw KeyRingError(
        .corrupted, message: "the Secret Service has \(found.count) items with these attributes; remove all but one")
    }
    guard let value = library.secret(first) else {
      throw KeyRingError(.unavailable, message: "the Secret Service did not return the secret; try again")
    }
    defer { library.releaseValue(value) }
    var count: UInt = 0
    let bytes = library.valueBytes(value, &count)
    guard count <= SecretServiceKeySource.maximumSize else {
      throw KeyRingError(
        .corrupted, message: "the item has \(count) bytes, but keys have at most \(SecretServiceKeySource.maximumSize)")
    }
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(count)))
  }

  /// Returns the items with the attributes, each of which you must release.
  private func search() throws(KeyRingError) -> [LibSecret.Object] {
    try objects("the Secret Service did not answer a search") {
      library.search(service, nil, attributes, Self.searchFlags, nil, $0)
    }
  }

  /// Throws an error if any keyring is locked, because some services find nothing in a locked one.
  private func refuseLockedCollections() throws(KeyRingError) {
    _ = try Self.calling(library, "the Secret Service did not list its keyrings") {
      library.loadCollections(service, nil, $0) == 0 ? nil : service
    }
    let collections = try objects("the Secret Service did not list its keyrings") { _ in library.collections(service) }
    defer { collections.forEach { library.release($0) } }
    guard !collections.isEmpty else {
      throw KeyRingError(.unavailable, message: "the Secret Service has no keyring; unlock or create one and try again")
    }
    guard let locked = collections.first(where: { library.isCollectionLocked($0) != 0 }) else { return }
    let label = library.collectionLabel(locked)
    defer { library.free(label) }
    throw KeyRingError(
      .unavailable,
      message: "the keyring '\(label.map { String(cString: $0) } ?? "")' is locked and may have the keys; unlock it "
        + "and try again")
  }

  /// Replaces the secret of the item that ``load()`` found, or creates the item in the default keyring.
  ///
  /// - Parameters:
  ///   - bytes: The secret.
  ///   - label: The name of a new item for people.
  /// - Throws: `KeyRingError`.
  func save(_ bytes: [UInt8], label: String) throws(KeyRingError) {
    // The type of UTF-8 text, so that the programs for keyrings show it.
    guard let value = library.newValue(bytes, bytes.count, "text/plain") else {
      throw KeyRingError(.ioFailed, message: "libsecret could not create a secret")
    }
    defer { library.releaseValue(value) }
    _ = try Self.calling(library, "the Secret Service did not save the keys") { errors in
      let isSaved =
        if let item {
          library.setSecret(item, value, nil, errors)
        } else {
          library.store(service, nil, attributes, "default", label, value, nil, errors)
        }
      return isSaved == 0 ? nil : service
    }
  }

  // MARK: Results and errors

  /// Returns the elements of a list, each of which you must release.
  private func objects(
    _ message: String, _ call: (LibSecret.Errors) -> LibSecret.Object?
  ) throws(KeyRingError) -> [LibSecret.Object] {
    var failure: UnsafeMutableRawPointer?
    let list = call(&failure)
    if let failure { throw Self.error(failure, message, library) }
    defer { library.releaseList(list) }
    return (0..<library.listCount(list)).compactMap { library.listElement(list, $0) }
  }

  /// Returns the result of a call, which is `nil` only after a failure.
  private static func calling(
    _ library: LibSecret, _ message: String, _ call: (LibSecret.Errors) -> LibSecret.Object?
  ) throws(KeyRingError) -> LibSecret.Object {
    var failure: UnsafeMutableRawPointer?
    let result = call(&failure)
    if let failure { throw error(failure, message, library) }
    guard let result else { throw KeyRingError(.unavailable, message: message) }
    return result
  }

  /// Converts an error of GLib, which is a domain, a code and a text, and frees it.
  private static func error(
    _ failure: UnsafeMutableRawPointer, _ message: String, _ library: LibSecret
  ) -> KeyRingError {
    defer { library.releaseError(failure) }
    let domain = library.domainName(failure.load(as: UInt32.self)).map { String(cString: $0) } ?? ""
    let code = failure.load(fromByteOffset: 4, as: Int32.self)
    let text = failure.load(fromByteOffset: 8, as: UnsafePointer<CChar>?.self).map { String(cString: $0) } ?? ""
    // `G_DBUS_ERROR_ACCESS_DENIED`, from a service that refuses the program.
    let isDenied = domain == "g-dbus-error-quark" && code == 9
    return KeyRingError(isDenied ? .notPermitted : .unavailable, message: "\(message): \(text) (\(domain) \(code))")
  }
}
#endif
