import Larder

/// A transaction that stood on a page and is not there by its key, which must not happen.
struct MissingTransaction: Error, CustomStringConvertible {
  let key: StoreKey

  var description: String { "the transaction with the key \(key) stood on a page, but the store does not have it" }
}
