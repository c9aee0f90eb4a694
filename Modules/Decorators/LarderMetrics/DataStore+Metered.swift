#if Metrics
public import Larder
public import Logging

extension DataStore {
  /// Measures every operation; see ``MeteredStore``.
  ///
  /// - Parameters:
  ///   - name: The name under which operations are measured; the store's own unless given.
  ///   - size: How many bytes a value has; bytes are not counted unless it is given.
  ///   - slowThreshold: From how long on an operation is logged; 100 ms unless given.
  ///   - logger: Where slow operations are logged; a logger of the label `larder` unless given, `nil` for nowhere.
  public func metered(
    as name: String? = nil, size: (@Sendable (Value) -> Int)? = nil, slowThreshold: Duration = .milliseconds(100),
    logger: Logger? = Logger(label: "larder")
  ) -> MeteredStore<Self> {
    metered(
      by: StoreMeter(
        name: name ?? information.name, countsBytes: size != nil, slowThreshold: slowThreshold, logger: logger),
      size: size)
  }

  /// Measures every operation by a meter of one's own; see ``MeteredStore``.
  ///
  /// - Parameters:
  ///   - meter: What measures.
  ///   - size: How many bytes a value has; bytes are not counted unless it is given.
  public func metered(by meter: StoreMeter, size: (@Sendable (Value) -> Int)? = nil) -> MeteredStore<Self> {
    MeteredStore(self, meter: meter, size: size)
  }
}
#endif
