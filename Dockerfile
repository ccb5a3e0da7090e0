# An image of one of the examples, without shell and package manager. Three kinds of programs:
#
#   an App:         docker build -t tuza-hello . && docker run --rm -p 8080:8080 tuza-hello
#                   docker build -t tuza-notes --build-arg EXAMPLE=sqlite_notes .
#   a TCP server:   docker build -t tuza-chat --build-arg EXAMPLE=chat_tcp --target tcp .
#   other programs: docker build -t tuza-pipeline --build-arg EXAMPLE=pipeline --target program .
#
# The tests: docker build --target test .
#
# The base is a dated tag, which its publisher never makes again. A registry tells its digest, which is safer still:
# --build-arg BASE=debian@sha256:...
ARG BASE=debian:bookworm-20250520-slim

FROM ${BASE} AS sources
WORKDIR /src
COPY .ci/packages.sh .ci/
RUN bash -c '. .ci/packages.sh && need build' \
 && apt-get install -y -qq --no-install-recommends ca-certificates
COPY . .

FROM sources AS test
RUN bash -c '. .ci/packages.sh && need test'
RUN cmake --preset release -DTUZA_TESTS=ON -DTUZA_TEST_AARCH64=OFF -DTUZA_BENCHMARKS=OFF \
 && cmake --build build/release
RUN ctest --test-dir build/release --output-on-failure --no-tests=error --parallel "$(nproc)" --label-exclude '^all$'

# The library is the same for all examples, so it is a layer of its own.
FROM sources AS build
RUN cmake --preset release -DTUZA_TESTS=OFF -DTUZA_BENCHMARKS=OFF \
 && cmake --build build/release --target tuza_framework probe
ARG EXAMPLE=hello
RUN cmake --build build/release --target "$EXAMPLE" \
 && bash .ci/image-root.sh /image "build/release/examples/$EXAMPLE" build/release/examples/probe \
 && ln -s "$EXAMPLE" /image/usr/bin/example

# The program, probe, the libraries that they are linked with, certificate authorities; /data is writable, and the
# folder in which the program starts.
FROM scratch AS program
ARG EXAMPLE=hello
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tuza-$EXAMPLE" \
      org.opencontainers.image.description="An example of Tuza: network servers with a goroutine per connection" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /image /
WORKDIR /data
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/example"]

FROM program AS tcp
EXPOSE 7000
CMD ["--listen", "0.0.0.0:7000"]

FROM program AS app
EXPOSE 8080
# Environment variables set the ports independently of the arguments that the container is run with. They override a
# mounted configuration; --listen and --set override them. The admin listener, which the health check asks, is for the
# container's network: its port is not exposed, so -P does not publish it. With --network host every process on the
# machine could reach it: use -e TUZA_ADMIN_LISTEN=127.0.0.1:9090 there.
ENV TUZA_HTTP_LISTEN=0.0.0.0:8080 TUZA_ADMIN_LISTEN=0.0.0.0:9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/usr/bin/probe", "127.0.0.1:9090", "/healthz"]
