/// Something that asks for memory pressure, again and again, until it is told to stop.
protocol MemoryPressureSource: Sendable {
  /// Stops.
  func cancel()
}
