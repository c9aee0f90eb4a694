#if LMDB
internal import CLMDB
public import Larder

/// What a call of the LMDB library returned, or the operating system through it.
///
/// It is the ``StoreError/underlying`` error of what an ``LMDBStore`` throws.
public struct LMDBError: ValueFreeError, Hashable {
  /// The number: negative for LMDB's own, which `lmdb.h` lists, else that of the operating system.
  public let code: Int32

  /// Makes an error.
  ///
  /// - Parameter code: What the library returned.
  public init(code: Int32) {
    self.code = code
  }

  /// Throws unless a call went well.
  ///
  /// - Parameter code: What the library returned.
  static func check(_ code: Int32) throws(LMDBError) {
    if code != MDB_SUCCESS { throw LMDBError(code: code) }
  }
}

extension LMDBError: CustomStringConvertible {
  /// The library's text, and the number.
  public var description: String {
    "\(mdb_strerror(code).map { String(cString: $0) } ?? "unknown") (\(code))"
  }
}
#endif
