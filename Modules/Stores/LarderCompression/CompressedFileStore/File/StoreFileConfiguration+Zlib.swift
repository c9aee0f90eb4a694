#if Compression
import Larder
import LarderFiles

extension StoreFileConfiguration {
  /// Runs work with zlib, and makes an error of the store of any that it throws.
  func reportingZlibErrors<Result>(during operation: StoreOperation, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: name)
    }
  }
}

extension StoreError {
  /// Makes the error of a store out of a failed call of zlib, which has no memory.
  init(_ error: ZlibError, during operation: StoreOperation, store: String) {
    self.init(
      .ioFailed, during: operation, store: store, message: "there is not enough memory for zlib",
      underlying: error, isRetryable: true)
  }
}
#endif
