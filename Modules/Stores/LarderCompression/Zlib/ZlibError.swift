#if Compression
internal import CZlib
public import Larder

/// What a call of the zlib library returned.
///
/// It is found as the ``StoreError/underlying`` error of what a store throws.
public struct ZlibError: ValueFreeError, Hashable {
  /// The number, negative, which `zlib.h` lists.
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
  static func check(_ code: Int32) throws(ZlibError) {
    if code != Z_OK { throw ZlibError(code: code) }
  }

  /// The bytes are no deflate stream of the size that was expected.
  static let damaged = ZlibError(code: Z_DATA_ERROR)
}

extension ZlibError: CustomStringConvertible {
  /// The library's text, and the number.
  public var description: String {
    "\(zError(code).map { String(cString: $0) } ?? "unknown") (\(code))"
  }
}
#endif
