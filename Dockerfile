# The container image, for those who have an engine: the same files and settings as those of
# "make image", which needs none, and a test of deploy/image compares both.
#
#	docker build --build-arg VERSION=$(git describe --tags --always) --build-arg REVISION=$(git rev-parse HEAD) --tag licet:dev .
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY deploy/image/go.mod deploy/image/go.sum deploy/image/
RUN go mod download && go mod download -C deploy/image
COPY . .
ARG TARGETOS=linux TARGETARCH=amd64 VERSION=dev REVISION
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.revision=$REVISION" -o /out/usr/local/bin/ ./cmd/...
RUN go run -C deploy/image . roots /out/etc/ssl/certs/ca-certificates.crt

# Nothing but the programs and the certificates of public authorities, which webhooks are
# sent by. All of it belongs to root, and the user may change none of it.
FROM scratch
ARG VERSION=dev REVISION CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="licet" \
      org.opencontainers.image.description="A licensing and order service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/licet/licet" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
COPY --from=build /out/etc/ /etc/
COPY --from=build /out/usr/ /usr/
ENV PATH=/usr/local/bin
WORKDIR /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/licet"]
CMD ["serve"]
